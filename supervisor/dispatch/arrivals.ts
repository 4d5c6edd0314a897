/**
 * Counts a model's calls that were admitted and are not in line yet, and the bytes of their bodies that have arrived. When
 * room runs short, the body that arrives most slowly is refused: slow clients must not keep others out.
 */
import type { ServeError } from '../../protocol/errors.js';

/** A place for a call whose body is still arriving. `submit` or `release` gives it back; further calls do nothing. */
export interface Admission {
  /** The body arrives from now on. `onEvicted` is called if the place is taken away to make room for others. */
  begin(onEvicted: (error: ServeError) => void): void;
  /** Counts bytes of the body before they are kept. @throws SERVE_QUEUE_FULL */
  grow(bytes: number): void;
  /** The body is whole: the place is safe. */
  complete(): void;
  release(): void;
}

/** Age from which a body is judged by its rate: a younger one may have had no chance to arrive. */
const MIN_AGE_MS = 1000;

/** The rate is of recent bytes: bytes older than this count half, twice as old a quarter. */
const RATE_WINDOW_MS = 5000;

/** The part of `Arrivals` that its places use. */
interface Room {
  /** @throws SERVE_QUEUE_FULL if there is no room for so many more bytes */
  checkRoom(moreBytes: number): void;
  count(bytes: number): void;
  remove(place: Place): void;
  /** The error of a call whose place is taken away. */
  refusal(): ServeError;
}

export class Arrivals implements Arriving {
  /** An array, not a Set: a Set that fills and empties all the time is rebuilt all the time. */
  readonly #places: Place[] = [];
  readonly #room: Room;
  #bytes = 0;

  /** Counts its bytes in `budget` too, which may take places away until they have left it. */
  constructor(budget: ByteBudget, refusal: () => ServeError) {
    this.#room = {
      refusal,
      checkRoom: (moreBytes) => {
        if (!budget.makeRoom(moreBytes)) throw refusal();
      },
      count: (bytes) => {
        this.#bytes += bytes;
        budget.count(bytes);
      },
      remove: (place) => this.#remove(place),
    };
    budget.join(this);
  }

  get count(): number {
    return this.#places.length;
  }

  /** Bytes that have arrived. */
  get bytes(): number {
    return this.#bytes;
  }

  add(): Admission {
    const place = new Place(this.#room);
    place.index = this.#places.push(place) - 1;
    return place;
  }

  /** Takes away the place of the slowest body. @throws SERVE_QUEUE_FULL if all are too young to be judged */
  makePlace(): void {
    const slowest = this.slowest(0, performance.now());
    if (slowest === null) throw this.#room.refusal();
    slowest.evict();
  }

  /** Takes every place away. */
  evictAll(error: ServeError): void {
    for (const place of [...this.#places]) place.evict(error);
  }

  slowest(minBytes: number, nowMs: number): SlowBody | null {
    let slowest: Place | null = null;
    let leastRate = Infinity;
    for (const place of this.#places) {
      const rate = place.bytesPerMs(nowMs);
      if (rate >= leastRate || place.bytes < minBytes) continue;
      leastRate = rate;
      slowest = place;
    }
    return slowest;
  }

  #remove(place: Place): void {
    const last = this.#places.pop() as Place;
    if (last !== place) {
      this.#places[place.index] = last;
      last.index = place.index;
    }
    this.#room.count(-place.bytes);
  }
}

class Place implements Admission, SlowBody {
  /** Index among all places; -1 once it is given back. */
  index = 0;
  bytes = 0;
  readonly #room: Room;
  #onEvicted: ((error: ServeError) => void) | null = null;
  #beganAtMs = 0;
  /** Begin of the time over which the rate is measured, and the bytes that count in it. */
  #rateSinceMs = 0;
  #rateBytes = 0;

  constructor(room: Room) {
    this.#room = room;
  }

  begin(onEvicted: (error: ServeError) => void): void {
    this.#onEvicted = onEvicted;
    this.#beganAtMs = performance.now();
    this.#rateSinceMs = this.#beganAtMs;
  }

  grow(bytes: number): void {
    this.#room.checkRoom(bytes);
    if (this.index < 0) return; // it was itself the slowest
    this.bytes += bytes;
    this.#age(performance.now());
    this.#rateBytes += bytes;
    this.#room.count(bytes);
  }

  complete(): void {
    this.#onEvicted = null;
  }

  release(): void {
    if (this.index < 0) return;
    this.#room.remove(this);
    this.index = -1;
  }

  evict(error = this.#room.refusal()): void {
    this.release();
    this.#onEvicted?.(error);
  }

  bytesPerMs(nowMs: number): number {
    if (this.#onEvicted === null || nowMs - this.#beganAtMs < MIN_AGE_MS) return Infinity;
    this.#age(nowMs);
    return this.#rateBytes / (nowMs - this.#rateSinceMs);
  }

  #age(nowMs: number): void {
    while (nowMs - this.#rateSinceMs > 2 * RATE_WINDOW_MS) {
      this.#rateSinceMs += RATE_WINDOW_MS;
      this.#rateBytes /= 2;
    }
  }
}

/** An arriving body, which may be refused to make room. */
interface SlowBody {
  /** Recent rate; Infinity for a body that is too young to be judged. */
  bytesPerMs(nowMs: number): number;
  evict(): void;
}

/** The arriving bodies of one model. */
interface Arriving {
  /** Finds the slowest of the bodies with at least `minBytes`; null if all are too young to be judged. */
  slowest(minBytes: number, nowMs: number): SlowBody | null;
}

/**
 * Bounds the bytes that wait in the whole server, including bodies that are still arriving. When room runs short, the body
 * that arrives most slowly is refused, for any model.
 */
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
