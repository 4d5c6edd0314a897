/** Writes the file of `--ready-file`, by which a program that starts the server learns that it is ready, and its addresses. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { ServeError, describeThrown } from '../../protocol/errors.js';
import type { Log } from '../observe/log.js';
import type { Addresses } from './listeners.js';

export class ReadyFile {
  readonly #path: string;

  /** Removes the file of an earlier server, and proves that one can be written. @throws SERVE_CONFIG */
  constructor(path: string) {
    this.#path = path;
    try {
      this.remove();
      writeFileSync(this.#unfinished, '');
    } catch (cause) {
      const { message } = describeThrown(cause);
      throw new ServeError('SERVE_CONFIG', `--ready-file cannot be written: ${message}`, { cause });
    }
  }

  /** Writes the addresses. A reader never finds a part of them, because the file is renamed when it is whole. */
  write({ url, managementUrl, metricsUrl }: Omit<Addresses, 'socketPath'>, log: Pick<Log, 'error'>): void {
    const facts = { url, managementUrl, metricsUrl, pid: process.pid };
    try {
      writeFileSync(this.#unfinished, `${JSON.stringify(facts)}\n`);
      renameSync(this.#unfinished, this.#path);
    } catch (cause) {
      log.error(`--ready-file cannot be written: ${describeThrown(cause).message}`);
    }
  }

  remove(): void {
    rmSync(this.#path, { force: true });
    rmSync(this.#unfinished, { force: true });
  }

  get #unfinished(): string {
    return `${this.#path}.unfinished`;
  }
}
