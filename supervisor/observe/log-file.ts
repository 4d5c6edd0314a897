/**
 * Appends lines to a file. Keeps their order, never blocks the front and never fails: lines that cannot be written are
 * dropped, and the first loss is reported. Other programs may truncate or copy the file; it is not opened again.
 */
import { constants } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { within } from '../machine/limit-timer.js';

/** Length of the lines kept while the disk is slow; later lines are dropped. */
const MAX_WAITING = 4 * 1024 * 1024;

/** Lines may contain personal data: other users must not read them. */
const MODE = 0o640;

/** Non-blocking: a pipe without a reader would block a thread, and with it the exit of the process. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NONBLOCK;

export class LogFile {
  readonly #path: string;
  readonly #onTrouble: (text: string) => void;
  /** Resolves with null if it cannot be opened. */
  readonly #file: Promise<FileHandle | null>;
  #waiting = '';
  /** Resolves once no line waits; null if none does. */
  #writing: Promise<void> | null = null;
  #isReported = false;

  /** Creates the folder if needed. `onTrouble` is called once, with a clause for the log. */
  constructor(path: string, onTrouble: (text: string) => void) {
    this.#path = path;
    this.#onTrouble = onTrouble;
    this.#file = this.#open();
  }

  /** Adds whole lines. */
  writeLines(lines: string): void {
    if (this.#waiting.length >= MAX_WAITING) return this.#report('the disk is too slow');
    this.#waiting += lines;
    this.#writing ??= this.#write();
  }

  /** Resolves once everything is written and the file is closed, at the latest after `limitMs`. */
  async close(limitMs: number): Promise<void> {
    const end = async (): Promise<void> => {
      const file = await this.#file;
      await this.#writing;
      await file?.close();
    };
    await within(limitMs, end());
  }

  async #open(): Promise<FileHandle | null> {
    try {
      await mkdir(dirname(this.#path), { recursive: true }).catch(() => {}); // then the file cannot be opened
      return await open(this.#path, FLAGS, MODE);
    } catch (error) {
      this.#report((error as Error).message);
      return null;
    }
  }

  async #write(): Promise<void> {
    const file = await this.#file;
    while (this.#waiting !== '') {
      const lines = this.#waiting;
      this.#waiting = '';
      await file?.appendFile(lines).catch((error: Error) => this.#report(error.message));
    }
    this.#writing = null;
  }

  #report(why: string): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#onTrouble(`lines are lost because ${this.#path} cannot be written: ${why}`);
  }
}
