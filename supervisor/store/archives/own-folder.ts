/**
 * A server's folder for unpacked files, in the temp folder: created when it is first needed, removed when the server ends.
 * Its name identifies the process, so that the next server can remove the folder of a killed one.
 */
import { execFile as execFileWithCallback } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, realpathSync, rmSync, utimes } from 'node:fs';
import { lstat, readdir, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isAlive, processNamespace, startOf } from '../../machine/processes.js';
import { formatMs } from '../../options/units.js';

const execFile = promisify(execFileWithCallback);

/** Followed by pid, start time, pid namespace and random digits. */
export const FOLDER_PREFIX = 'banana-serve-archives-';

/** Whether a file lies in such a folder: it comes from an archive, and its path means nothing to people. */
export function isUnpacked(path: string): boolean {
  return path.includes(`${sep}${FOLDER_PREFIX}`);
}

/** Interval at which a server touches its folder, for servers that cannot see its process. */
const TOUCH_MS = 60_000;

export class OwnFolder {
  readonly #report: (problem: string) => void;
  readonly #stop = new AbortController();
  #path: string | null = null;
  #touching: NodeJS.Timeout | null = null;
  #lastRemoval: Promise<void> = Promise.resolve();

  /** `report` gets a sentence about each folder that could not be removed. */
  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** Returns the real path; the first call creates the folder. @throws the system's error if that fails */
  open(): string {
    if (this.#stop.signal.aborted) throw new Error('the server ends');
    this.#path ??= this.#make();
    return this.#path;
  }

  /**
   * Removes a folder, in a process of its own: removing 30,000 files holds up the event loop for more than a second, even
   * with the asynchronous functions of Node. One process runs at a time, so that many removals leave a core to the calls.
   * Resolves when the folder is gone or cannot be removed; never rejects.
   */
  async remove(path: string): Promise<void> {
    if (await isRemovedAtOnce(path)) return;
    this.#lastRemoval = this.#lastRemoval.then(() => this.#removeInProcess(path));
    await this.#lastRemoval;
  }

  /**
   * Removes the folders of servers that were killed. No link is followed. Never rejects: folders that cannot be removed are
   * left for the next server.
   */
  async removeLeftovers(temp = tmpdir()): Promise<void> {
    for (const name of await readdir(temp).catch(() => []))
      if (await isLeftover(temp, name)) await this.remove(join(temp, name));
  }

  /** Removes the folder with its contents, synchronously, because it also runs at the exit of the process. */
  readonly close = (): void => {
    this.#stop.abort();
    process.off('exit', this.close);
    if (this.#touching !== null) clearInterval(this.#touching);
    if (this.#path === null) return;
    try {
      rmSync(this.#path, { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // A worker still writes into it. The next server removes it.
    }
  };

  async #removeInProcess(path: string): Promise<void> {
    const { signal } = this.#stop;
    if (signal.aborted) return;
    const problem = await runRemoval(path, signal);
    if (problem !== '' && !signal.aborted)
      this.#report(`the unpacked files in ${path} could not be removed: ${problem}`);
  }

  #make(): string {
    const owner = [process.pid, startOf(process.pid) ?? '0', processNamespace()].join('-');
    const path = join(realpathSync(tmpdir()), `${FOLDER_PREFIX}${owner}-${randomBytes(16).toString('hex')}`);
    mkdirSync(path, { mode: 0o700 }); // throws if anything exists there, even a link
    process.on('exit', this.close);
    this.#touching = setInterval(() => utimes(path, new Date(), new Date(), () => {}), TOUCH_MS).unref();
    return path;
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

const REMOVAL_PROGRAM = fileURLToPath(new URL('./folder-removal-process.js', import.meta.url));

/** A folder of the largest allowed archive takes seconds. */
const REMOVAL_LIMIT_MS = 10 * 60_000;

/** Resolves with the reason of a failure; empty if the folder is gone. */
async function runRemoval(path: string, signal: AbortSignal): Promise<string> {
  const { NODE_OPTIONS: _, ...env } = process.env;
  try {
    await execFile(process.execPath, [REMOVAL_PROGRAM, path], {
      env,
      signal,
      timeout: REMOVAL_LIMIT_MS,
      killSignal: 'SIGKILL',
    });
    return '';
  } catch (thrown) {
    const { stderr = '', killed, message } = thrown as Error & { stderr?: string; killed?: boolean };
    if (killed === true) return `it took longer than ${formatMs(REMOVAL_LIMIT_MS)}`;
    return stderr === '' ? message : stderr;
  }
}

/**
 * Processes in other containers, or on other machines that share the folder, are invisible: their folders are kept while
 * they are touched.
 */
const UNTOUCHED_MS = 15 * 60_000;

/** Whether the name is that of one of our folders, and its server has ended. */
async function isLeftover(temp: string, name: string): Promise<boolean> {
  if (!name.startsWith(FOLDER_PREFIX)) return false;
  const owner = /^(\d+)-(\d+)-([\dx]*[\da-f]*)-[\da-f]{32}$/.exec(name.slice(FOLDER_PREFIX.length));
  const found = await lstat(join(temp, name)).catch(() => null);
  if (owner === null || found?.isDirectory() !== true || found.uid !== process.getuid?.()) return false;
  const [, pid, start, namespace] = owner;
  if (namespace !== processNamespace()) return Date.now() - found.mtimeMs > UNTOUCHED_MS;
  if (start === '0') return !isAlive(Number(pid));
  const started = startOf(Number(pid));
  return started !== undefined && started !== start;
}
