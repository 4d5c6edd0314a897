/** The file of a worker's begun note (protocol/wire/begun-note.ts): it has no name, and is in RAM where the system has such files. */
import { closeSync, fstatSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import {
  BEGUN_NOTE_BYTES,
  begunNoteBytes,
  decodeBegunNote,
  type BegunNote,
} from '../../protocol/wire/begun-note.js';

/** Linux keeps its files in memory; containers have it even if their file system is read-only. */
const MEMORY_FOLDER = '/dev/shm';

/** Longest text that is read: a worker could write any amount. */
const MAX_LEFT_BYTES = 64 * 1024;

export class BegunFile {
  /** The descriptor that the worker inherits. */
  readonly fd: number;
  #bytes = Buffer.alloc(BEGUN_NOTE_BYTES);

  /** Creates the file in the first of the folders in which that succeeds. @throws Error if all fail */
  constructor(folders: readonly [string, ...string[]] = [MEMORY_FOLDER, tmpdir()]) {
    this.fd = openNameless(`banana-serve-${process.pid}-${randomUUID()}`, folders);
  }

  /** The worker keeps entries for so many calls behind its note, if there are more than one. */
  set concurrency(calls: number) {
    this.#bytes = Buffer.alloc(begunNoteBytes(calls));
  }

  read(): BegunNote {
    readSync(this.fd, this.#bytes, 0, this.#bytes.length, 0);
    return decodeBegunNote(this.#bytes);
  }

  /** Reads the text that the worker wrote behind its note, or the end of it if it is long. */
  readLeft(): string {
    const endsAt = fstatSync(this.fd).size;
    const beginsAt = Math.max(BEGUN_NOTE_BYTES, endsAt - MAX_LEFT_BYTES);
    const bytes = Buffer.alloc(Math.max(0, endsAt - beginsAt));
    const read = readSync(this.fd, bytes, 0, bytes.length, beginsAt);
    return bytes.toString('utf8', 0, read);
  }

  /** Closes this process's descriptor; the worker's stays open. */
  close(): void {
    closeSync(this.fd);
  }
}

function openNameless(name: string, [folder, ...others]: readonly [string, ...string[]]): number {
  try {
    return openIn(folder, name);
  } catch (thrown) {
    const [next, ...rest] = others;
    if (next === undefined) throw thrown;
    return openNameless(name, [next, ...rest]);
  }
}

function openIn(folder: string, name: string): number {
  const path = join(folder, name);
  const fd = openSync(path, 'wx+', 0o600);
  try {
    unlinkSync(path);
    writeSync(fd, Buffer.alloc(BEGUN_NOTE_BYTES)); // reserves the space: no note can fail on a full disk later
    return fd;
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
}
