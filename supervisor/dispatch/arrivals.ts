/**
 * Counts a model's calls that were admitted and are not in line yet, and the bytes of their bodies that have arrived. When
 * room runs short, the body that arrives most slowly is refused: slow clients must not keep others out.
 */
import type { ServeError } from '../../protocol/errors.js';
import type { Arriving, ByteBudget, SlowBody } from './byte-budget.js';

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
