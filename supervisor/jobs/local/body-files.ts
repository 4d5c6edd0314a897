/**
 * Bodies and results that are too large for a row, which would hold up all others: each is a file. A file is on the disk
 * before its row is written, and goes after its row; what a crash leaves without a row is removed at the next start.
 */
import { randomBytes } from 'node:crypto';
import { constants, readdirSync, rmSync } from 'node:fs';
import { access, open, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { inTime } from '../../machine/limit-timer.js';
import { formatMs } from '../../options/units.js';
import { reasonOf } from './sqlite-errors.js';

/** Longest time for an answer of a table or of its disk; clients wait for 10 s at most. */
export const ANSWER_LIMIT_MS = 8000;

/** The bytes of a body or a result: in the table, or in a file of its own, in the folder of the store, if they are many. */
export type KeptBytes =
  { readonly bytes: Uint8Array; readonly file: null } | { readonly bytes: null; readonly file: string };

/** While so much is free, nobody looks closer. */
const PLENTY_BYTES = 64 * 1024 ** 2;

export function bodiesFolder(folder: string): string {
  return join(folder, 'bodies');
}

/** Removes the files that no row has. Only while nothing is written there. */
export function removeOrphans(folder: string, known: ReadonlySet<string>): void {
  const bodies = bodiesFolder(folder);
  for (const file of readdirSync(bodies)) if (!known.has(file)) rmSync(join(bodies, file), { force: true });
}

/** A body that cannot be read, though others can; its message is the reason. */
export class LostBody extends Error {
  override readonly name = 'LostBody';
}

export class BodyFiles {
  readonly #folder: string;
  /** Bytes of files that are to be written, or are being written. */
  #wantedBytes = 0;
  readonly #writes = new Set<Promise<unknown>>();

  /** `folder`: that of the store. */
  constructor(folder: string) {
    this.#folder = bodiesFolder(folder);
  }

  /**
   * Keeps bytes in a file. Where room may be short `makeRoom` is asked before it is written, and no other is written
   * meanwhile: none counts room that another one takes. If it resolves with false, they are not kept.
   */
  async keep(
    pieces: readonly Buffer[],
    bytes: number,
    makeRoom: () => Promise<boolean>,
  ): Promise<KeptBytes | null> {
    this.#wantedBytes += bytes;
    try {
      const hasPlenty = (await this.#freeBytes()) - this.#wantedBytes >= PLENTY_BYTES;
      while (!hasPlenty && this.#writes.size > 0) await Promise.allSettled(this.#writes);
      const write = this.#keepFile(pieces, hasPlenty ? null : makeRoom);
      this.#writes.add(write);
      return await write.finally(() => this.#writes.delete(write));
    } finally {
      this.#wantedBytes -= bytes;
    }
  }

  /** @throws LostBody if it alone cannot be read */
  async read({ bytes, file }: KeptBytes): Promise<Buffer> {
    if (bytes !== null) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    try {
      return await readAll(join(this.#folder, file));
    } catch (error) {
      await answered(access(this.#folder, READ_AND_WRITE)); // else no body can be read, and that is no fault of this one
      if (isPassing(error)) throw error;
      throw new LostBody(reasonOf(error));
    }
  }

  /** Never rejects: a file that stays is removed at the next start. */
  async remove(file: string | null): Promise<void> {
    if (file !== null) await rm(join(this.#folder, file), { force: true }).catch(() => {});
  }

  async #freeBytes(): Promise<number> {
    const { bavail, bsize } = await answered(statfs(this.#folder));
    return bavail * bsize;
  }

  async #keepFile(
    pieces: readonly Buffer[],
    makeRoom: (() => Promise<boolean>) | null,
  ): Promise<KeptBytes | null> {
    if (makeRoom !== null && !(await makeRoom())) return null;
    const writing = this.#write(pieces);
    const file = await answered(writing).catch((error: unknown) => {
      writing.then((late) => this.remove(late)).catch(() => {}); // it has removed its file itself
      throw error;
    });
    return { bytes: null, file };
  }

  async #write(pieces: readonly Buffer[]): Promise<string> {
    const file = randomBytes(16).toString('hex');
    const path = join(this.#folder, file);
    const part = `${path}.part`;
    try {
      const handle = await open(part, 'wx', 0o600);
      try {
        for (const piece of pieces) await handle.writeFile(piece);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(part, path);
      await this.#syncFolder();
      return file;
    } catch (error) {
      await Promise.all([part, path].map((one) => rm(one, { force: true }).catch(() => {})));
      throw error;
    }
  }

  async #syncFolder(): Promise<void> {
    const handle = await open(this.#folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
}

/** Reads a file in steps, each of which the disk must end in time: a large file may take longer, on a disk that is busy. */
async function readAll(path: string): Promise<Buffer> {
  const handle = await answered(open(path));
  try {
    const { size } = await answered(handle.stat());
    const bytes = Buffer.allocUnsafeSlow(size);
    let filled = 0;
    for (let read = -1; read !== 0 && filled < size; filled += read)
      read = (await answered(handle.read(bytes, filled, Math.min(STEP_BYTES, size - filled)))).bytesRead;
    return bytes.subarray(0, filled);
  } finally {
    void handle.close().catch(() => {}); // not awaited: it waits for a read that hangs
  }
}

const STEP_BYTES = 1024 ** 2;

/** Failures of this process, or of a disk that hangs: none of the file. */
function isPassing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined || PASSING.has(code);
}

const PASSING: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EINTR']);

const READ_AND_WRITE = constants.R_OK | constants.W_OK | constants.X_OK;

/** Rejects if the disk takes too long, as it does when it hangs. */
function answered<T>(work: Promise<T>): Promise<T> {
  return inTime(ANSWER_LIMIT_MS, work, NO_ANSWER);
}

const NO_ANSWER = `its disk has not answered for ${formatMs(ANSWER_LIMIT_MS)}`;
