/** Explains failures of SQLite and of the file system, for people: https://sqlite.org/rescode.html. */
import { getSystemErrorName } from 'node:util';

const BUSY = 5;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const PROTOCOL = 15;
const NOTADB = 26;

/** Extended code: the file is shorter than it should be. */
const SHORT_READ = 522;

function extendedCodeOf(error: unknown): number {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code : 0;
}

function codeOf(error: unknown): number {
  return extendedCodeOf(error) & 0xff;
}

/** Whether another connection has the file. */
export function isTaken(error: unknown): boolean {
  return [BUSY, PROTOCOL].includes(codeOf(error));
}

/** Whether the file does not contain what SQLite writes. */
export function isDamage(error: unknown): boolean {
  return [CORRUPT, NOTADB].includes(codeOf(error)) || extendedCodeOf(error) === SHORT_READ;
}

/** Whether it passes as soon as the disk has room. */
export function isFull(error: unknown): boolean {
  return codeOf(error) === FULL || (error as NodeJS.ErrnoException).code === 'ENOSPC';
}

/** The error for what would take the room that is kept for accepted jobs; its code is the system's for a full disk. */
export function noRoom(): Error {
  return Object.assign(new Error(NO_ROOM), { code: 'ENOSPC' });
}

/** The reason of a failure, as a part of a sentence. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC') return message === NO_ROOM ? NO_ROOM : FULL_DISK;
  switch (codeOf(error)) {
    case READONLY:
      return 'this process has no permission to write it';
    case FULL:
      return FULL_DISK;
    case IOERR:
      return `the system failed to read or write it${systemName(error)}`;
    case CANTOPEN:
      return `the system cannot open it${systemName(error)}`;
    default:
      return isDamage(error) ? `it is damaged (${message})` : message;
  }
}

const FULL_DISK = 'the disk is full';
const NO_ROOM = 'the disk is full, or has only the room left that is kept for accepted jobs';

function systemName(error: unknown): string {
  const { systemErrno } = error as { systemErrno?: unknown };
  return typeof systemErrno === 'number' && systemErrno > 0 ? ` (${getSystemErrorName(-systemErrno)})` : '';
}
