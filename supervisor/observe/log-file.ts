/**
 * Appends lines to a file. Keeps their order, never blocks the front and never fails: lines that cannot be written are
 * dropped, and the first loss is reported. Other programs may truncate or copy the file; it is not opened again.
 */
import { close, constants, mkdir, open, write } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Writable } from 'node:stream';

/** Bytes of lines kept while the disk is slow; later lines are dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** Lines may contain personal data: other users must not read them. */
const MODE = 0o640;

/** Non-blocking: a pipe without a reader would block a thread, and with it the exit of the process. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NONBLOCK;

export class LogFile extends Writable {
  readonly #path: string;
  readonly #onTrouble: (text: string) => void;
  #isReported = false;
  #fd: number | null = null;

  /** Creates the folder if needed. `onTrouble` is called once, with a clause for the log. */
  constructor(path: string, onTrouble: (text: string) => void) {
    super({ decodeStrings: true });
    this.#path = path;
    this.#onTrouble = onTrouble;
  }

  /** Adds whole lines. */
  writeLines(lines: string): void {
    if (this.writableLength < MAX_WAITING_BYTES) this.write(lines);
    else this.#report('the disk is too slow');
  }

  /** Resolves once everything is written and the file is closed, at the latest after `limitMs`. */
  close(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.destroy();
        resolve();
      }, limitMs);
      this.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      this.end();
    });
  }

  override _construct(done: () => void): void {
    mkdir(dirname(this.#path), { recursive: true }, () => {
      open(this.#path, FLAGS, MODE, (error, fd) => {
        if (error === null) this.#fd = fd;
        else this.#report(error.message); // also fails if the folder could not be created
        done();
      });
    });
  }

  override _write(data: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#fd === null) done();
    else this.#append(this.#fd, data, 0, done);
  }

  override _writev(parts: { chunk: Buffer }[], done: () => void): void {
    this._write(Buffer.concat(parts.map(({ chunk }) => chunk)), 'utf8', done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#fd === null) done(error);
    else close(this.#fd, () => done(error));
  }

  #append(fd: number, data: Buffer, offset: number, done: () => void): void {
    write(fd, data, offset, (error, written) => {
      if (error !== null) this.#report(error.message);
      if (error !== null || offset + written === data.length) done();
      else this.#append(fd, data, offset + written, done);
    });
  }

  #report(why: string): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#onTrouble(`lines are lost because ${this.#path} cannot be written: ${why}`);
  }
}

/**
 * Opens a file for each name in a folder, if the operator wants files; with `location` null they are null. `folder`: base
 * of relative paths. `onTrouble` is called at most once per file.
 */
export function openLogFiles<Name extends string>(
  location: string | null,
  folder: string,
  names: Readonly<Record<Name, string>>,
  onTrouble: (text: string) => void,
): Record<Name, LogFile | null> {
  const open = (file: string): LogFile | null =>
    location === null ? null : new LogFile(join(resolve(folder, location), file), onTrouble);
  const files = Object.entries<string>(names).map(([name, file]) => [name, open(file)] as const);
  return Object.fromEntries(files) as Record<Name, LogFile | null>;
}
