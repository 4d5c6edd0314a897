/**
 * Bounds the bytes that wait in the whole server, including bodies that are still arriving. When room runs short, the body
 * that arrives most slowly is refused, for any model.
 */

/** An arriving body, which may be refused to make room. */
export interface SlowBody {
  /** Recent rate; Infinity for a body that is too young to be judged. */
  bytesPerMs(nowMs: number): number;
  evict(): void;
}

/** The arriving bodies of one model. */
export interface Arriving {
  /** Finds the slowest of the bodies with at least `minBytes`; null if all are too young to be judged. */
  slowest(minBytes: number, nowMs: number): SlowBody | null;
}

export class ByteBudget {
  readonly limitBytes: number;
  readonly #arriving = new Set<Arriving>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Bytes that wait now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Lets these bodies be refused to make room, until `leave`. */
  join(arriving: Arriving): void {
    this.#arriving.add(arriving);
  }

  leave(arriving: Arriving): void {
    this.#arriving.delete(arriving);
  }

  /** Counts so many more bytes that wait, or fewer. */
  count(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Makes room for so many more bytes, by refusing at most one body. Returns false if that fails. */
  makeRoom(moreBytes: number): boolean {
    const missingBytes = this.#bytes + moreBytes - this.limitBytes;
    if (missingBytes <= 0) return true;
    const slowest = this.#slowest(missingBytes, performance.now());
    slowest?.evict();
    return slowest !== null;
  }

  #slowest(minBytes: number, nowMs: number): SlowBody | null {
    let slowest: SlowBody | null = null;
    let leastRate = Infinity;
    for (const arriving of this.#arriving) {
      const body = arriving.slowest(minBytes, nowMs);
      const rate = body?.bytesPerMs(nowMs) ?? Infinity;
      if (rate >= leastRate) continue;
      leastRate = rate;
      slowest = body;
    }
    return slowest;
  }
}
