/**
 * Whether the disk of a local store has room. A part of it is kept from new jobs, so that those which were accepted begin, end
 * and are cancelled on a disk that the store itself has filled; results may use half of that part.
 *
 * What is committed lies in a log until the next checkpoint, which needs room in the file of the table. That file never
 * shrinks: rows that go leave room in it.
 */
import { statfsSync, statSync } from 'node:fs';
import { databaseFile, type Database } from './job-database.js';

const MAX_RESERVE_BYTES = 16 * 1024 ** 2;

/** While so much more is free than is to be left, the disk is looked at once a second only: a look takes as long as a row. */
const PLENTY_BYTES = 1024 ** 3;
const LOOK_MS = 1000;

/** A job needs this at least: one that is smaller is refused only when every job is. */
const LEAST_ROOM_BYTES = 32 * 1024;

/** Room for something that is to be written: rows go into the log and the table, a file beside them. */
export interface Need {
  readonly of: 'job' | 'result';
  readonly rowBytes: number;
  readonly fileBytes: number;
}

export interface DiskFigures {
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** Size of the table's file, and by how much the next checkpoint makes it grow. */
  readonly tableBytes: number;
  readonly owedBytes: number;
  /** Room within the table. */
  readonly unusedBytes: number;
  /** Rows that are to be written to the log together with what is needed. */
  readonly logBytes: number;
}

/** Null if the system does not tell. */
export type LookAtDisk = () => Omit<DiskFigures, 'logBytes'> | null;

export function reserveOf(totalBytes: number): number {
  return Math.min(MAX_RESERVE_BYTES, totalBytes / 4);
}

/**
 * `spareBytes`: what must be left besides the reserve. What fits into the table as it is leaves a quarter of the reserve to the
 * log: the rows of ended jobs are replaced on any disk that has not been filled by others.
 */
export function fits(disk: DiskFigures, need: Need, spareBytes = 0): boolean {
  const { of, rowBytes, fileBytes } = need;
  const reserveBytes = reserveOf(disk.totalBytes);
  const moreBytes = fileBytes + Math.max(0, rowBytes - disk.unusedBytes);
  const leftBytes = disk.freeBytes - disk.owedBytes - moreBytes;
  if (leftBytes < Math.max(reserveBytes / (moreBytes > 0 ? 2 : 4), disk.logBytes + rowBytes)) return false;
  const unusedBytes = Math.max(0, disk.unusedBytes - rowBytes);
  return of === 'result' || leftBytes + unusedBytes >= reserveBytes + spareBytes;
}

/** Whether a result could be kept if nothing else were on this disk. */
export function canEverFit(
  { totalBytes, tableBytes }: Pick<DiskFigures, 'totalBytes' | 'tableBytes'>,
  { rowBytes, fileBytes }: Need,
): boolean {
  return rowBytes + fileBytes <= totalBytes - reserveOf(totalBytes) - tableBytes; // half of it is for the log
}

export class DiskRoom {
  readonly #look: LookAtDisk;
  /** Rows of the transaction that goes on, which are not in the log yet. */
  #logBytes = 0;
  /** A small job was refused: until a little more is free, all are, or jobs would be refused and taken by turns. */
  #isShort = false;
  /** Bytes that can be taken without a look, until a time. */
  #plentyBytes = 0;
  #plentyUntilMs = 0;

  constructor(look: LookAtDisk) {
    this.#look = look;
  }

  /** A transaction begins. */
  begin(): void {
    this.#logBytes = 0;
  }

  /**
   * Returns whether there is room, which the rows then have taken. `drop` drops what makes some, returns the bytes of a file
   * that go with it, and null if there is nothing; what it has dropped in vain is for the caller to take back.
   */
  take(need: Need, drop: () => number | null): boolean {
    for (let goneBytes = 0; !this.#hasPlenty(need) && !this.#has(need, goneBytes);) {
      const dropped = drop();
      if (dropped === null) return false;
      goneBytes += dropped;
    }
    this.#logBytes += need.rowBytes;
    return true;
  }

  /** As `canEverFit`. */
  couldHave(need: Need): boolean {
    const disk = this.#look();
    return disk === null || canEverFit(disk, need);
  }

  #hasPlenty({ rowBytes, fileBytes }: Need): boolean {
    this.#plentyBytes -= Math.max(rowBytes, LEAST_ROOM_BYTES) + fileBytes;
    return this.#plentyBytes >= 0 && performance.now() < this.#plentyUntilMs;
  }

  #has(need: Need, goneBytes: number): boolean {
    const now = this.#look();
    if (now === null) return true;
    this.#plentyBytes = now.freeBytes - now.owedBytes - reserveOf(now.totalBytes) - PLENTY_BYTES;
    this.#plentyUntilMs = performance.now() + LOOK_MS;
    const disk = { ...now, freeBytes: now.freeBytes + goneBytes, logBytes: this.#logBytes };
    if (need.of === 'result') return fits(disk, need);
    const least: Need = { of: 'job', rowBytes: LEAST_ROOM_BYTES, fileBytes: 0 };
    this.#isShort = !fits(disk, least, this.#isShort ? reserveOf(disk.totalBytes) / 64 : 0);
    const rowBytes = Math.max(need.rowBytes, LEAST_ROOM_BYTES);
    return !this.#isShort && fits(disk, { ...need, rowBytes });
  }
}

/** Looks at the disk of this folder, and at the table there. */
export function lookAtDisk(database: Database, folder: string): LookAtDisk {
  const file = databaseFile(folder);
  const [pageBytes, pages, unusedPages] = ['page_size', 'page_count', 'freelist_count'].map((name) => {
    const statement = database.prepare(`PRAGMA ${name}`);
    return (): number => (statement.get() as Readonly<Record<string, number>>)[name] ?? 0;
  }) as [() => number, () => number, () => number];
  return () => {
    const { blocks, bavail, bsize } = statfsSync(folder);
    if (blocks === 0) return null;
    const tableBytes = statSync(file).size;
    return {
      totalBytes: blocks * bsize,
      freeBytes: bavail * bsize,
      tableBytes,
      owedBytes: Math.max(0, pages() * pageBytes() - tableBytes),
      unusedBytes: unusedPages() * pageBytes(),
    };
  };
}

/** Bounds the log, which needs room too. */
export function boundLog(database: Database, look: LookAtDisk): void {
  const reserveBytes = reserveOf(look()?.totalBytes ?? Infinity);
  database.exec(`
    PRAGMA wal_autocheckpoint = ${Math.max(16, Math.floor(reserveBytes / 4 / PAGE_BYTES))};
    PRAGMA journal_size_limit = ${Math.floor(reserveBytes / 2)};
  `);
}

const PAGE_BYTES = 4096;
