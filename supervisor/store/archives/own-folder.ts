/**
 * A server's own folder for what it unpacks, below the temp folder: made when it is first needed, gone when the server ends.
 * Its name says whose it is, so that the next server can remove what one leaves that is killed (`leftovers.ts`).
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, realpathSync, rmSync, utimes } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processNamespace, startOf } from '../../machine/process-start.js';

/** Before the process, its start, its name space, and what nobody can guess. */
export const FOLDER_PREFIX = 'banana-serve-archives-';

/** How often a living server touches its folder, for those who cannot see its process. */
const TOUCH_MS = 60_000;

export class OwnFolder {
  #path: string | null = null;
  #touching: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** Its real path; it is made by the first call. @throws what the system says if it cannot be made */
  open(): string {
    if (this.#isClosed) throw new Error('the server ends');
    this.#path ??= this.#make();
    return this.#path;
  }

  /** It is removed with all that it holds, at once: the end of the process does it, too. */
  readonly close = (): void => {
    this.#isClosed = true;
    process.off('exit', this.close);
    if (this.#touching !== null) clearInterval(this.#touching);
    if (this.#path === null) return;
    try {
      rmSync(this.#path, { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // A worker writes into it to its end. The next server removes it.
    }
  };

  #make(): string {
    const owner = [process.pid, startOf(process.pid) ?? '0', processNamespace()].join('-');
    const path = join(realpathSync(tmpdir()), `${FOLDER_PREFIX}${owner}-${randomBytes(16).toString('hex')}`);
    mkdirSync(path, { mode: 0o700 }); // throws if anything stands there, a link included
    process.on('exit', this.close);
    this.#touching = setInterval(() => utimes(path, new Date(), new Date(), () => {}), TOUCH_MS).unref();
    return path;
  }
}
