/**
 * Memory for large bodies, used again and again. Bodies of many megabytes that are allocated for each call live just
 * long enough to reach V8's old generation; each 64 MB of them cost the front a full garbage collection, which was
 * 40% of its time at 10 MB per call (docs/benchmarks.md).
 *
 * Whoever took a slab may give it back once nothing will read it any more; one that is not given back is left to the
 * garbage collector. So the rule for every user is: give back only where the end is certain, on the path where all
 * went well.
 */
/** Bodies below this are V8's: they die young, and cheaply. */
export const MIN_SLAB_BYTES = 256 * 1024;

/** The most memory that is kept for the next bodies, and for how long. */
const KEEP_BYTES = 64 * 1024 * 1024;
const KEEP_MS = 10_000;

export class Slabs {
  readonly #free = new Map<number, ArrayBuffer[]>();
  /** Slabs that were taken and not given back. Weak, so that a slab that nobody gives back is collected. */
  readonly #lent = new WeakSet<ArrayBufferLike>();
  #freeBytes = 0;
  #inUse = false;

  /** Hears when large bodies come, and when none came for a while. */
  onUse: (inUse: boolean) => void = () => {};

  /** Bytes that wait to be used again. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** A buffer of `bytes` with anything in it. */
  take(bytes: number): Buffer {
    if (bytes < MIN_SLAB_BYTES) return Buffer.allocUnsafe(bytes);
    const size = slabBytes(bytes);
    const reused = this.#free.get(size)?.pop();
    if (reused !== undefined) this.#freeBytes -= size;
    const slab = reused ?? Buffer.allocUnsafeSlow(size).buffer;
    this.#lent.add(slab);
    if (!this.#inUse) this.#use(true);
    return Buffer.from(slab, 0, bytes);
  }

  /** Nothing will read this buffer, or write to it, any more. A buffer that is not from `take`, or was given back, is let be. */
  give(buffer: Buffer): void {
    const slab = buffer.buffer as ArrayBuffer;
    if (!this.#lent.delete(slab) || !this.#inUse) return;
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
