/**
 * Finds damage in the log of commits (https://sqlite.org/fileformat2.html#walformat) before SQLite opens it: SQLite takes a log
 * as ended at the first frame that is not as it should be, and forgets the commits behind that without a word.
 *
 * Each commit is on the disk before the next one begins (`synchronous = FULL`), so only the last one may be torn by a kill or
 * a power loss. A frame behind the end of a broken commit proves that this commit was whole once. A log that is cut at its
 * end looks as if it had never been longer: that cannot be told.
 */
import { readFileSync, statSync } from 'node:fs';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;
/** The size of a page, for files whose header cannot be read. */
const USUAL_PAGE_BYTES = 4096;

export interface LogDamage {
  /** A part of a sentence. */
  readonly why: string;
  /** Bytes of the log up to the last commit that SQLite would read. */
  readonly wholeBytes: number;
}

/** Null if nothing is damaged, as far as can be told. */
export function damageOfLog(file: string): LogDamage | null {
  const log = readIfThere(`${file}-wal`);
  if (log === null || log.length <= HEADER_BYTES) return null;
  const found = damageIn(log);
  if (found.why !== null) return { why: found.why, wholeBytes: found.wholeBytes };
  const isEmpty = (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0;
  return isEmpty && found.wholeBytes > 0 ? { why: 'the file is empty, its log is not', wholeBytes: 0 } : null;
}

function damageIn(log: Buffer): { why: string | null; wholeBytes: number } {
  const header = new Log(log, log.readUInt32BE(8), (log.readUInt32BE(0) & 1) === 1);
  if (!header.hasWholeHeader) {
    const isBroken = [true, false].some((isBig) => new Log(log, USUAL_PAGE_BYTES, isBig).agrees());
    return { why: isBroken ? 'the header of its log does not fit what follows' : null, wholeBytes: 0 };
  }
  const { whole, commits } = header.wholeFrames();
  const why = header.goesOnBehindCommit(whole) ? 'a commit in its log is broken, and others follow it' : null;
  return { why, wholeBytes: commits === 0 ? 0 : header.at(commits) };
}

/** Two sums, each modulo 2^32. */
type Sums = readonly [number, number];

class Log {
  readonly #log: Buffer;
  readonly #frameBytes: number;
  readonly #isBig: boolean;

  constructor(log: Buffer, pageBytes: number, isBig: boolean) {
    this.#log = log;
    this.#frameBytes = FRAME_HEADER_BYTES + pageBytes;
    this.#isBig = isBig;
  }

  get hasWholeHeader(): boolean {
    if ((this.#log.readUInt32BE(0) & ~1) !== MAGIC) return false;
    return areSame(this.#sum(0, HEADER_BYTES - 8, [0, 0]), this.#sumsAt(HEADER_BYTES - 8));
  }

  /** Returns the place at which a frame begins. */
  at(frame: number): number {
    return HEADER_BYTES + frame * this.#frameBytes;
  }

  /** Number of frames before the first broken one, and of those up to the last commit among them. */
  wholeFrames(): { whole: number; commits: number } {
    let [whole, commits] = [0, 0];
    let sums = this.#sumsAt(HEADER_BYTES - 8);
    for (; whole < this.#count; whole += 1) {
      if (!this.#isOfHeader(whole) || !areSame(this.#sumOf(whole, sums), this.#sumsOf(whole))) break;
      sums = this.#sumsOf(whole);
      if (this.#isCommit(whole)) commits = whole + 1;
    }
    return { whole, commits };
  }

  /** Whether one of the frames from here on ends a commit, and the next one was written behind it. */
  goesOnBehindCommit(from: number): boolean {
    for (let frame = from; frame + 1 < this.#count; frame += 1)
      if (this.#isOfHeader(frame) && this.#isCommit(frame) && this.#isFollowed(frame)) return true;
    return false;
  }

  /** Whether two frames, one behind the other, fit each other. */
  agrees(): boolean {
    for (let frame = 0; frame + 1 < this.#count; frame += 1) if (this.#isFollowed(frame)) return true;
    return false;
  }

  get #count(): number {
    return Math.floor((this.#log.length - HEADER_BYTES) / this.#frameBytes);
  }

  /** The sums of a frame go on from those of the frame before, so frames of different times do not fit. */
  #isFollowed(frame: number): boolean {
    if (!this.#saltsOf(frame).equals(this.#saltsOf(frame + 1))) return false;
    return areSame(this.#sumOf(frame + 1, this.#sumsOf(frame)), this.#sumsOf(frame + 1));
  }

  /** Frames of an earlier use of the file have other salts. */
  #isOfHeader(frame: number): boolean {
    return this.#saltsOf(frame).equals(this.#log.subarray(16, 24));
  }

  #isCommit(frame: number): boolean {
    return this.#log.readUInt32BE(this.at(frame) + 4) !== 0;
  }

  #saltsOf(frame: number): Buffer {
    return this.#log.subarray(this.at(frame) + 8, this.at(frame) + 16);
  }

  #sumsOf(frame: number): Sums {
    return this.#sumsAt(this.at(frame) + 16);
  }

  #sumsAt(at: number): Sums {
    return [this.#log.readUInt32BE(at), this.#log.readUInt32BE(at + 4)];
  }

  #sumOf(frame: number, before: Sums): Sums {
    const at = this.at(frame);
    return this.#sum(at + FRAME_HEADER_BYTES, at + this.#frameBytes, this.#sum(at, at + 8, before));
  }

  #sum(from: number, to: number, [a, b]: Sums): Sums {
    for (let at = from; at < to; at += 8) {
      a = (a + this.#word(at) + b) >>> 0;
      b = (b + this.#word(at + 4) + a) >>> 0;
    }
    return [a, b];
  }

  #word(at: number): number {
    return this.#isBig ? this.#log.readUInt32BE(at) : this.#log.readUInt32LE(at);
  }
}

function areSame(one: Sums, other: Sums): boolean {
  return one[0] === other[0] && one[1] === other[1];
}

function readIfThere(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
