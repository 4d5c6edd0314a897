/**
 * A file that lines are added to. Keeps order, never blocks the front and never fails it: what cannot be written is
 * dropped, and the first time somebody is told. Others may truncate or copy the file; it is not opened again.
 */
import { close, constants, mkdir, open, write } from 'node:fs';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';

/** Lines kept for a disk that does not keep up; later ones are dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** Lines may tell of people's data: others of the machine do not read them. */
const MODE = 0o640;

/** Not blocking: a pipe that nobody reads would hold a thread, and with it the end of the process. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NONBLOCK;

export class LogFile extends Writable {
  readonly #path: string;
  readonly #onTrouble: (text: string) => void;
  #isTold = false;
  #fd: number | null = null;

  /** Its folder is made if it is not there. `onTrouble` is told once, in words. */
  constructor(path: string, onTrouble: (text: string) => void) {
    super({ decodeStrings: true });
    this.#path = path;
    this.#onTrouble = onTrouble;
  }

  /** Adds whole lines. */
  writeLines(lines: string): void {
    if (this.writableLength < MAX_WAITING_BYTES) this.write(lines);
    else this.#tell('the disk does not keep up');
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
        else this.#tell(error.message); // what keeps the folder from being made keeps the file from being opened
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
      if (error !== null) this.#tell(error.message);
      if (error !== null || offset + written === data.length) done();
      else this.#append(fd, data, offset + written, done);
    });
  }

  #tell(why: string): void {
    if (this.#isTold) return;
    this.#isTold = true;
    this.#onTrouble(`${this.#path}: lines are lost, because it cannot be written: ${why}`);
  }
}
