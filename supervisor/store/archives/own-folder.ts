/**
 * A server's folder for unpacked files, in the temp folder: created when it is first needed, removed when the server ends.
 * Its name identifies the process, so that the next server can remove the folder of a killed one (`leftovers.ts`).
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, realpathSync, rmSync, utimes } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { processNamespace, startOf } from '../../machine/process-start.js';
import type { FolderRemoval } from './folder-removal.js';

/** The members of `FolderRemoval` that are used here. */
export type Removal = Pick<FolderRemoval, 'remove' | 'close'>;

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
