/**
 * Unpacks archives once per content, however many models share it. An unpacked folder is lent, and removed when the last
 * borrower releases it.
 */
import { createHash } from 'node:crypto';
import { constants, type BigIntStats } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { ArchiveProblem, UnpackingCancelled } from './archive-entry.js';
import type { OwnFolder } from './own-folder.js';
import { unpack } from './unpack.js';

interface Unpacked {
  readonly folder: string;
  users: number;
  /** Cancels unpacking. */
  readonly stop: AbortController;
  /** Rejects if the archive cannot be unpacked. */
  readonly done: Promise<void>;
}

const CHUNK_BYTES = 256 * 1024;

export class ArchiveCache {
  readonly #own: OwnFolder;
  readonly #byDigest = new Map<string, Unpacked>();
  readonly #closing: AbortSignal;
  #made = 0;

  /** `closing` cancels all unpacking; its reason is an UnpackingCancelled. `own` removes the folders then. */
  constructor(own: OwnFolder, closing: AbortSignal) {
    this.#own = own;
    this.#closing = closing;
  }

  /**
   * `folder`: real path of the unpacked folder. `path`: a file that may be an archive. `signal`: the borrower has left; unpacking ends, unless others wait for it too.
   * `sha256`: checksum of the file in hexadecimal, if it is known and only this server writes the file.
   * Rejects with ArchiveProblem, UnpackingCancelled, or errors of the system; an error leaves nothing behind.
   */
  async lend(
    path: string,
    signal?: AbortSignal,
    sha256?: string,
  ): Promise<{ readonly folder: string; readonly release: () => void }> {
    const { unpacked, giveBack } = await this.#borrow(path, sha256, signal);
    const onLeft = (): void => void giveBack();
    signal?.addEventListener('abort', onLeft, { once: true });
    try {
      throwIfLeft(signal);
      await unpacked.done;
      throwIfLeft(signal);
      return { folder: unpacked.folder, release: () => void giveBack() };
    } catch (thrown) {
      await giveBack();
      throw thrown;
    } finally {
      signal?.removeEventListener('abort', onLeft);
    }
  }

  /** Begins to unpack the archive, unless that is done or under way. `giveBack`: as `#use` returns it. */
  async #borrow(
    path: string,
    sha256: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ unpacked: Unpacked; giveBack: () => Promise<void> }> {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    let isFileTaken = false;
    try {
      const found = await file.stat({ bigint: true });
      if (!found.isFile()) throw new ArchiveProblem('it is not a file.');
      const digest = sha256 ?? (await this.#digestOf(file, signal));
      const known = this.#byDigest.get(digest);
      const unpacked = known ?? this.#begin(digest, file, found);
      isFileTaken = known === undefined;
      return { unpacked, giveBack: this.#use(digest, unpacked) };
    } finally {
      if (!isFileTaken) await file.close();
    }
  }

  /** Takes over the file. */
  #begin(digest: string, file: FileHandle, found: BigIntStats): Unpacked {
    const folder = join(this.#own.open(), `${digest}-${(this.#made += 1)}`);
    const stop = new AbortController();
    const done = this.#unpack(folder, file, found, AbortSignal.any([stop.signal, this.#closing]));
    const unpacked = { folder, users: 0, stop, done };
    this.#byDigest.set(digest, unpacked);
    return unpacked;
  }

  async #unpack(folder: string, file: FileHandle, found: BigIntStats, signal: AbortSignal): Promise<void> {
    try {
      await mkdir(folder, { mode: 0o700 });
      await unpack(file, folder, signal);
    } finally {
      // A changing archive seems damaged, because the read bytes are neither its old nor its new content.
      await refuseChanged(file, found).finally(() => file.close());
    }
  }

  /**
   * Returns the function that releases the folder; unpacking ends if no other borrower waits for it. The function never
   * rejects; a second call does nothing.
   */
  #use(digest: string, unpacked: Unpacked): () => Promise<void> {
    unpacked.users += 1;
    let isHeld = true;
    return async () => {
      if (!isHeld) return;
      isHeld = false;
      unpacked.users -= 1;
      if (unpacked.users > 0) return;
      if (this.#byDigest.get(digest) === unpacked) this.#byDigest.delete(digest);
      unpacked.stop.abort(borrowerLeft());
      await unpacked.done.catch(() => {}); // before, files would still be added
      await this.#own.remove(unpacked.folder);
    };
  }

  async #digestOf(file: FileHandle, signal: AbortSignal | undefined): Promise<string> {
    const hash = createHash('sha256');
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let at = 0; ;) {
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, at);
      this.#closing.throwIfAborted();
      throwIfLeft(signal);
      if (bytesRead === 0) return hash.digest('hex');
      hash.update(chunk.subarray(0, bytesRead));
      at += bytesRead;
    }
  }
}

/** @throws UnpackingCancelled */
function throwIfLeft(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw borrowerLeft();
}

function borrowerLeft(): UnpackingCancelled {
  return new UnpackingCancelled('its request has ended');
}

/** @throws ArchiveProblem */
async function refuseChanged(file: FileHandle, before: BigIntStats): Promise<void> {
  const { size, mtimeNs, ctimeNs } = await file.stat({ bigint: true });
  // ctime also changes if another file replaces this one.
  if (size === before.size && mtimeNs === before.mtimeNs && ctimeNs === before.ctimeNs) return;
  throw new ArchiveProblem('it was changed while it was read; ask again once it is complete.');
}
