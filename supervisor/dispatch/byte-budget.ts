/**
 * One bound for the bytes that wait in the whole server, bodies that are still arriving included. When they run short, the
 * body that arrives most slowly is refused, whichever model it is for.
 */

/** A body that arrives, and may be refused to make room. */
export interface SlowBody {
  /** Lately; Infinity for what cannot be judged by its rate. */
  bytesPerMs(nowMs: number): number;
  evict(): void;
}

/** Bodies of one model that arrive. */
export interface Arriving {
  /** The body that arrives most slowly of those that hold `minBytes`; null if none can be judged. */
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

  /** These bodies may be refused to make room, until `leave`. */
  join(arriving: Arriving): void {
    this.#arriving.add(arriving);
  }

  leave(arriving: Arriving): void {
    this.#arriving.delete(arriving);
  }

  /** So many bytes more wait, or fewer. */
  count(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Makes room for so many bytes more, by refusing at most one body. Returns false if there is none to be made. */
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
