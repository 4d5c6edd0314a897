/** SQLite's errors for a store: which pass, and what the others mean (https://sqlite.org/rescode.html). */
import { setTimeout } from 'node:timers/promises';
import { getSystemErrorName } from 'node:util';

const BUSY = 5;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const PROTOCOL = 15;
const TOOBIG = 18;
const NOTADB = 26;

/** Extended code: the file is shorter than it should be. */
const SHORT_READ = 522;

/** Returns the extended code of an error of SQLite; 0 for any other error. */
function extendedCodeOf(error: unknown): number {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code : 0;
}

function codeOf(error: unknown): number {
  return extendedCodeOf(error) & 0xff;
}

/** Whether another connection holds a lock, so that the same call may succeed a moment later. */
export function isBusy(error: unknown): boolean {
  return [BUSY, PROTOCOL].includes(codeOf(error));
}

/** Whether the file does not contain what SQLite writes. */
export function isDamage(error: unknown): boolean {
  return [CORRUPT, NOTADB].includes(codeOf(error)) || extendedCodeOf(error) === SHORT_READ;
}

/** Returns the reason why a store could not be used, as a part of a sentence. */
export function reasonOf(error: Error): string {
  const cause = systemName(error);
  switch (codeOf(error)) {
    case BUSY:
    case PROTOCOL:
      return 'another process has held its lock for 30 s';
    case READONLY:
      return 'this process has no permission to write it';
    case FULL:
      return 'the disk is full';
    case IOERR:
      return `the system failed to read or write it${cause}`;
    case CANTOPEN:
      return `the system cannot open it${cause}`;
    case TOOBIG:
      return 'the value is too large for it';
    default:
      return error.message;
  }
}

function systemName(error: Error): string {
  const { systemErrno } = error as { systemErrno?: unknown };
  return typeof systemErrno === 'number' && systemErrno > 0 ? ` (${getSystemErrorName(-systemErrno)})` : '';
}

/** Longest wait of a call while other processes write; the text of an error mentions it too. */
const BUSY_LIMIT_MS = 30_000;
const FIRST_DELAY_MS = 0.5;
const LAST_DELAY_MS = 10;

/**
 * Runs a step, repeatedly while it meets a lock of another process: a wait in SQLite would block the event loop.
 * @throws its error; that of a lock after the limit
 */
export async function untilFree<T>(step: () => T, limitMs = BUSY_LIMIT_MS): Promise<T> {
  const beganAtMs = performance.now();
  for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(2 * delayMs, LAST_DELAY_MS)) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || performance.now() - beganAtMs >= limitMs) throw error;
    }
    // Random, so that two processes that collided once do not collide every time.
    await setTimeout(delayMs * (0.5 + Math.random()));
  }
}
