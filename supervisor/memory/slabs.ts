/**
 * Memory for large bodies, used again and again. Bodies of many megabytes that are allocated for each call live just
 * long enough to reach V8's old generation; each 64 MB of them cost the front a full garbage collection, which was
 * 40% of its time at 10 MB per call (docs/benchmarks.md).
 *
 * A slab is lent: only the holder of the lease can give it back. One that is never released is left to the garbage
 * collector, so a lease is released only where the end is certain, on the path where all went well.
 */

/** Memory for one body. */
export interface Lease {
  /** Anything may be in it. */
  readonly buffer: Buffer;
  /** Gives the memory back, once nothing reads or writes it any more; a second time does nothing. */
  release(): void;
}

/** The release of memory that nobody gives back: it is left to the garbage collector. */
export function leaveToCollector(): void {}

/** Bodies below this are V8's: they die young, and cheaply. */
export const MIN_SLAB_BYTES = 256 * 1024;

/** The most memory that is kept for the next bodies, and for how long. */
const KEEP_BYTES = 64 * 1024 * 1024;
const KEEP_MS = 10_000;

export class Slabs {
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;
  #inUse = false;

  /** Hears when large bodies come, and when none came for a while. */
  onUse: (inUse: boolean) => void = () => {};

  /** Bytes that wait to be used again. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** Lends a buffer of `bytes`. */
  take(bytes: number): Lease {
    if (bytes < MIN_SLAB_BYTES) return { buffer: Buffer.allocUnsafe(bytes), release: leaveToCollector };
    const size = slabBytes(bytes);
    const reused = this.#free.get(size)?.pop();
    if (reused !== undefined) this.#freeBytes -= size;
    const slab = reused ?? Buffer.allocUnsafeSlow(size).buffer;
    if (!this.#inUse) this.#use(true);
    let isLent = true;
    const release = (): void => {
      if (isLent) this.#takeBack(slab);
      isLent = false;
    };
    return { buffer: Buffer.from(slab, 0, bytes), release };
  }

  #takeBack(slab: ArrayBuffer): void {
    if (!this.#inUse) return;
    const size = slab.byteLength;
    if (this.#freeBytes + size > KEEP_BYTES) return;
    const free = this.#free.get(size);
    if (free === undefined) this.#free.set(size, [slab]);
    else free.push(slab);
    this.#freeBytes += size;
  }

  #use(inUse: boolean): void {
    this.#inUse = inUse;
    this.onUse(inUse);
    if (inUse) setTimeout(() => this.#letGo(), KEEP_MS).unref();
  }

  /** A busy server allocates a few of them anew every now and then; an idle one holds none. */
  #letGo(): void {
    this.#free.clear();
    this.#freeBytes = 0;
    this.#use(false);
  }
}

/** Rounded up to a quarter of its power of two, so that bodies of about one size share slabs. */
function slabBytes(bytes: number): number {
  const step = 2 ** (31 - Math.clz32(bytes)) / 4;
  return Math.ceil(bytes / step) * step;
}

/** The slabs of this process. */
export const slabs = new Slabs();
