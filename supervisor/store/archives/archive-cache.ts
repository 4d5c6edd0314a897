/**
 * Unpacks archives once per content, however many models share it. An unpacked folder is lent, and removed when the last
 * borrower releases it.
 */
import { createHash } from 'node:crypto';
import { constants, type BigIntStats } from 'node:fs';
import { mkdir, open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Release } from '../stored-model.js';
import { ArchiveProblem, UnpackingCancelled } from './archive-problem.js';
import { ARCHIVE_LIMITS } from './limits.js';
import type { OwnFolder } from './own-folder.js';
import { unpack } from './unpack.js';

export interface LentFolder {
  /** Real path of the unpacked folder. */
  readonly folder: string;
  readonly release: Release;
}

interface Unpacked {
  readonly folder: string;
  users: number;
  /** Rejects if the archive cannot be unpacked. */
  readonly done: Promise<void>;
}

const CHUNK_BYTES = 256 * 1024;

export class ArchiveCache {
  readonly #own: OwnFolder;
  readonly #limits: typeof ARCHIVE_LIMITS;
  readonly #byDigest = new Map<string, Unpacked>();
  readonly #stop = new AbortController();
  #made = 0;

  constructor(own: OwnFolder, limits = ARCHIVE_LIMITS) {
    this.#own = own;
    this.#limits = limits;
  }

  /**
   * `path`: a file that may be an archive. `sha256`: its checksum in hexadecimal, if known and only this server writes it.
   * Rejects with ArchiveProblem, or with errors of the system; an error leaves nothing behind.
   */
  async lend(path: string, sha256?: string): Promise<LentFolder> {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const found = await file.stat({ bigint: true });
      if (!found.isFile()) throw new ArchiveProblem('it is not a file.');
      const digest = sha256 ?? (await this.#digestOf(file));
      const shared = this.#byDigest.get(digest) ?? this.#begin(digest, file, found);
      const giveBack = this.#use(digest, shared);
      await shared.done.catch(async (thrown: unknown) => {
        await giveBack();
        throw thrown;
      });
      return { folder: shared.folder, release: () => void giveBack() };
    } finally {
      await file.close();
    }
  }

  /** Cancels unpacking. Unpacked folders are removed with the server's folder. */
  close(): void {
    this.#stop.abort(new UnpackingCancelled('the server ends'));
  }

  #begin(digest: string, file: FileHandle, found: BigIntStats): Unpacked {
    const folder = join(this.#own.open(), `${digest}-${(this.#made += 1)}`);
    const done = this.#unpack(folder, file, found);
    const unpacked = { folder, users: 0, done };
    this.#byDigest.set(digest, unpacked);
    return unpacked;
  }

  async #unpack(folder: string, file: FileHandle, found: BigIntStats): Promise<void> {
    try {
      await mkdir(folder, { mode: 0o700 });
      await unpack({ file, folder, limits: this.#limits, signal: this.#stop.signal });
    } finally {
      // A changing archive seems damaged, because the read bytes are neither its old nor its new content.
      await refuseChanged(file, found);
    }
  }

  /** Returns the function that releases the folder. That never rejects; a second call does nothing. */
  #use(digest: string, unpacked: Unpacked): () => Promise<void> {
    unpacked.users += 1;
    let isHeld = true;
    return async () => {
      if (!isHeld) return;
      isHeld = false;
      unpacked.users -= 1;
      if (unpacked.users > 0) return;
      if (this.#byDigest.get(digest) === unpacked) this.#byDigest.delete(digest);
      // Files that cannot be removed now are removed with the server's folder.
      await rm(unpacked.folder, { recursive: true, force: true }).catch(() => {});
    };
  }

  async #digestOf(file: FileHandle): Promise<string> {
    const hash = createHash('sha256');
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let at = 0; ;) {
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, at);
      this.#stop.signal.throwIfAborted();
      if (bytesRead === 0) return hash.digest('hex');
      hash.update(chunk.subarray(0, bytesRead));
      at += bytesRead;
    }
  }
}

/** @throws ArchiveProblem */
async function refuseChanged(file: FileHandle, before: BigIntStats): Promise<void> {
  const { size, mtimeNs, ctimeNs } = await file.stat({ bigint: true });
  // ctime also changes if another file replaces this one.
  if (size === before.size && mtimeNs === before.mtimeNs && ctimeNs === before.ctimeNs) return;
  throw new ArchiveProblem('it was changed while it was read; ask again once it is complete.');
}
