/**
 * Removes folders in a process of its own. Removing 30,000 files holds up the event loop for more than a second, even with
 * the asynchronous functions of Node. One process runs at a time, so that many removals leave a core to the calls.
 */
import { execFile as execFileWithCallback } from 'node:child_process';
import { rmdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { formatMs } from '../../options/units.js';

const execFile = promisify(execFileWithCallback);

const PROGRAM = fileURLToPath(new URL('./folder-removal-process.js', import.meta.url));

/** A folder of the largest allowed archive takes seconds. */
const LIMIT_MS = 10 * 60_000;

export class FolderRemoval {
  readonly #report: (problem: string) => void;
  readonly #stop = new AbortController();
  #last: Promise<void> = Promise.resolve();

  /** `report` gets a sentence about each folder that could not be removed. */
  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** Resolves when the folder is gone or cannot be removed; never rejects. */
  async remove(path: string): Promise<void> {
    if (await isRemovedAtOnce(path)) return;
    this.#last = this.#last.then(() => this.#removeInProcess(path));
    await this.#last;
  }

  /** Stops removing, at once and for good. */
  close(): void {
    this.#stop.abort();
  }

  async #removeInProcess(path: string): Promise<void> {
    const { signal } = this.#stop;
    if (signal.aborted) return;
    const problem = await run(path, signal);
    if (problem !== '' && !signal.aborted)
      this.#report(`the unpacked files in ${path} could not be removed: ${problem}`);
  }
}

/** Whether the folder was empty or did not exist, which is so for most archives that are refused. */
async function isRemovedAtOnce(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/** Resolves with the reason of a failure; empty if the folder is gone. */
async function run(path: string, signal: AbortSignal): Promise<string> {
  const { NODE_OPTIONS: _, ...env } = process.env;
  try {
    await execFile(process.execPath, [PROGRAM, path], {
      env,
      signal,
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
    });
    return '';
  } catch (thrown) {
    const { stderr = '', killed, message } = thrown as Error & { stderr?: string; killed?: boolean };
    if (killed === true) return `it took longer than ${formatMs(LIMIT_MS)}`;
    return stderr === '' ? message : stderr;
  }
}
