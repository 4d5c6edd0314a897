/**
 * Reuses memory for large bodies. Bodies of many megabytes that are allocated for each call live just long enough to reach
 * V8's old generation; each 64 MB of them cost the front a full garbage collection, which was 40% of its time at 10 MB per
 * call (docs/benchmarks.md).
 *
 * A slab is lent: only the holder of the lease can release it. One that is never released is left to the garbage collector,
 * so leases are released only on the path of success, where nothing can still use the memory.
 */

/** Memory for one body. */
export interface Lease {
  /** Not zeroed. */
  readonly buffer: Buffer;
  /** Returns the memory; call it when nothing reads or writes it any more. A second call does nothing. */
  release(): void;
}

/** `release` of a buffer that is left to the garbage collector. */
export function leaveToCollector(): void {}

/** Smaller bodies are allocated by V8: they die young, which is cheap. */
export const MIN_SLAB_BYTES = 256 * 1024;

/** Limits of the memory that is kept for the next bodies. */
const KEEP_BYTES = 64 * 1024 * 1024;
const KEEP_MS = 10_000;

export class Slabs {
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;
  #inUse = false;

  /** Called with true when large bodies arrive, and with false after `KEEP_MS`. */
  onUse: (inUse: boolean) => void = () => {};

  /** Bytes that are kept for reuse. */
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

  /** Frees all kept slabs: a busy server then allocates a few again, an idle one holds none. */
  #letGo(): void {
    this.#free.clear();
    this.#freeBytes = 0;
    this.#use(false);
  }
}

/** Rounds up to a quarter of the power of two below, so that bodies of similar size share slabs. */
function slabBytes(bytes: number): number {
  const step = 2 ** (31 - Math.clz32(bytes)) / 4;
  return Math.ceil(bytes / step) * step;
}

/** The slabs of this process. */
export const slabs = new Slabs();
