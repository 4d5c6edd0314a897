/**
 * A server's folder for unpacked files, in the temp folder: created when it is first needed, removed when the server ends.
 * Its name identifies the process, so that the next server can remove the folder of a killed one.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, realpathSync, rmSync, utimes } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { isAlive, processNamespace, startOf } from '../../machine/process-start.js';
import type { FolderRemoval } from './folder-removal.js';

/** The members of `FolderRemoval` that are used here. */
type Removal = Pick<FolderRemoval, 'remove' | 'close'>;

/** Followed by pid, start time, pid namespace and random digits. */
export const FOLDER_PREFIX = 'banana-serve-archives-';

/** Whether a file lies in such a folder: it comes from an archive, and its path means nothing to people. */
export function isUnpacked(path: string): boolean {
  return path.includes(`${sep}${FOLDER_PREFIX}`);
}

/** Interval at which a server touches its folder, for servers that cannot see its process. */
const TOUCH_MS = 60_000;

export class OwnFolder {
  readonly #removal: Removal;
  #path: string | null = null;
  #touching: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** `removal` removes parts of the folder while the server runs; closed with the folder. */
  constructor(removal: Removal) {
    this.#removal = removal;
  }

  /** Returns the real path; the first call creates the folder. @throws the system's error if that fails */
  open(): string {
    if (this.#isClosed) throw new Error('the server ends');
    this.#path ??= this.#make();
    return this.#path;
  }

  /** Removes a folder in this folder. Never rejects: files that cannot be removed now are removed with this folder. */
  remove(path: string): Promise<void> {
    return this.#removal.remove(path);
  }

  /** Removes the folder with its contents, synchronously, because it also runs at the exit of the process. */
  readonly close = (): void => {
    this.#isClosed = true;
    this.#removal.close();
    process.off('exit', this.close);
    if (this.#touching !== null) clearInterval(this.#touching);
    if (this.#path === null) return;
    try {
      rmSync(this.#path, { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // A worker still writes into it. The next server removes it.
    }
  };

  #make(): string {
    const owner = [process.pid, startOf(process.pid) ?? '0', processNamespace()].join('-');
    const path = join(realpathSync(tmpdir()), `${FOLDER_PREFIX}${owner}-${randomBytes(16).toString('hex')}`);
    mkdirSync(path, { mode: 0o700 }); // throws if anything exists there, even a link
    process.on('exit', this.close);
    this.#touching = setInterval(() => utimes(path, new Date(), new Date(), () => {}), TOUCH_MS).unref();
    return path;
  }
}

/** Processes in other containers, or on other machines that share the folder, are invisible: their folders are kept while they are touched. */
const UNTOUCHED_MS = 15 * 60_000;

/** Removes the folders of servers that were killed. No link is followed. Never rejects: folders that cannot be removed are left for the next server. */
export async function removeLeftovers(removal: Removal, folder = tmpdir()): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    const owner = ownerIn(name);
    if (owner === null) continue;
    const path = join(folder, name);
    if (await isLeftover(path, owner)) await removal.remove(path);
  }
}

interface Owner {
  readonly pid: number;
  readonly start: string;
  readonly namespace: string;
}

/** Null if the name is not one of our folders. */
function ownerIn(name: string): Owner | null {
  if (!name.startsWith(FOLDER_PREFIX)) return null;
  const [, pid, start = '', namespace = ''] =
    /^(\d+)-(\d+)-([\dx]*[\da-f]*)-[\da-f]{32}$/.exec(name.slice(FOLDER_PREFIX.length)) ?? [];
  return pid === undefined ? null : { pid: Number(pid), start, namespace };
}

async function isLeftover(path: string, { pid, start, namespace }: Owner): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  if (found?.isDirectory() !== true || found.uid !== process.getuid?.()) return false;
  if (namespace !== processNamespace()) return Date.now() - found.mtimeMs > UNTOUCHED_MS;
  if (start === '0') return !isAlive(pid);
  const started = startOf(pid);
  return started !== undefined && started !== start;
}
