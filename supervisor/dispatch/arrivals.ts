/**
 * Counts a model's calls that were admitted and are not in line yet, and the bytes of their bodies that have arrived. When
 * room runs short, the body that arrives most slowly is refused: slow clients must not keep others out.
 */
import { ServeError } from '../../protocol/errors.js';

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

export class Arrivals {
  /** Makes the error of a call whose place is taken away. */
  readonly refusal: () => ServeError;
  /** An array, not a Set: a Set that fills and empties all the time is rebuilt all the time. Only places change it. */
  readonly places: Place[] = [];
  readonly budget: ByteBudget;
  /** Bytes that have arrived. */
  bytes = 0;

  /** Counts its bytes in `budget` too, which may take places away until they have left it. */
  constructor(budget: ByteBudget, refusal: () => ServeError) {
    this.budget = budget;
    this.refusal = refusal;
    budget.arrivals.add(this);
  }

  /** Takes away the place of the slowest body. @throws SERVE_QUEUE_FULL if all are too young to be judged */
  makePlace(): void {
    const slowest = this.slowest(0, performance.now());
    if (slowest === null) throw this.refusal();
    slowest.evict();
  }

  /** Takes every place away. */
  evictAll(error: ServeError): void {
    for (const place of [...this.places]) place.evict(error);
  }

  /** Finds the slowest of the bodies with at least `minBytes`; null if all are too young to be judged. */
  slowest(minBytes: number, nowMs: number): Place | null {
    return slowestOf(
      this.places.filter(({ bytes }) => bytes >= minBytes),
      nowMs,
    );
  }
}

/** A place among those of a model, which it joins at once. */
export class Place implements Admission {
  bytes = 0;
  /** Index among all places; -1 once it is given back. */
  #index: number;
  #arrivals: Arrivals;
  #onEvicted: ((error: ServeError) => void) | null = null;
  #beganAtMs = 0;
  /** Begin of the time over which the rate is measured, and the bytes that count in it. */
  #rateSinceMs = 0;
  #rateBytes = 0;

  constructor(arrivals: Arrivals) {
    this.#arrivals = arrivals;
    this.#index = arrivals.places.push(this) - 1;
  }

  begin(onEvicted: (error: ServeError) => void): void {
    this.#onEvicted = onEvicted;
    this.#beganAtMs = performance.now();
    this.#rateSinceMs = this.#beganAtMs;
  }

  grow(bytes: number): void {
    const arrivals = this.#arrivals;
    arrivals.budget.makeRoom(bytes, arrivals.refusal);
    if (this.#index < 0) return; // it was itself the slowest
    this.#age(performance.now());
    this.#rateBytes += bytes;
    this.bytes += bytes;
    arrivals.bytes += bytes;
    arrivals.budget.bytes += bytes;
  }

  complete(): void {
    this.#onEvicted = null;
  }

  release(): void {
    if (this.#index < 0) return;
    const { places, budget } = this.#arrivals;
    const last = places.pop() as Place;
    if (last !== this) {
      places[this.#index] = last;
      last.#index = this.#index;
    }
    this.#index = -1;
    this.#arrivals.bytes -= this.bytes;
    budget.bytes -= this.bytes;
  }

  /** Moves to a place in a queue, where the body continues to arrive. @throws what `admit` throws */
  moveTo(admit: (bytes: number) => Place): void {
    const { bytes } = this;
    this.release();
    const place = admit(bytes);
    this.#arrivals = place.#arrivals;
    this.#index = place.#index;
    this.#arrivals.places[this.#index] = this;
    this.bytes = 0;
    this.#rateBytes = 0;
    if (this.#onEvicted !== null) this.begin(this.#onEvicted);
    this.grow(bytes);
  }

  /** Takes the place away. */
  evict(error = this.#arrivals.refusal()): void {
    this.release();
    this.#onEvicted?.(error);
  }

  /** Recent rate; Infinity for a body that is too young to be judged. */
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

/** Null if all are too young to be judged. */
function slowestOf(places: Iterable<Place>, nowMs: number): Place | null {
  let slowest: Place | null = null;
  let leastRate = Infinity;
  for (const place of places) {
    const rate = place.bytesPerMs(nowMs);
    if (rate >= leastRate) continue;
    leastRate = rate;
    slowest = place;
  }
  return slowest;
}

/**
 * Bounds the bytes that wait in the whole server, including bodies that are still arriving. When room runs short, the body
 * that arrives most slowly is refused, for any model.
 */
export class ByteBudget {
  readonly limitBytes: number;
  /** Bytes that wait now; who holds them counts them. */
  bytes = 0;
  /** Its models: their bodies may be refused to make room. */
  readonly arrivals = new Set<Arrivals>();

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Makes room for so many more bytes, by refusing at most one body. @throws `refusal` if that fails */
  makeRoom(moreBytes: number, refusal: () => ServeError): void {
    const missingBytes = this.bytes + moreBytes - this.limitBytes;
    if (missingBytes <= 0) return;
    const nowMs = performance.now();
    const candidates = [...this.arrivals].flatMap((arrivals) => arrivals.slowest(missingBytes, nowMs) ?? []);
    const slowest = slowestOf(candidates, nowMs);
    if (slowest === null) throw refusal();
    slowest.evict();
  }
}

const MAX_UNROUTED = 64;
const MAX_UNROUTED_BYTES = 128 * 1024 * 1024;

/**
 * Holds request bodies whose model or API key is not known yet, because it is in the body itself. They take no place in a
 * model's queue. Their number and size are bounded; when room runs short, the slowest of them is refused.
 */
export class UnroutedBodies {
  readonly #arrivals = new Arrivals(
    new ByteBudget(MAX_UNROUTED_BYTES),
    () => new ServeError('SERVE_QUEUE_FULL', undefined, { retryAfterS: 1 }),
  );

  /** @throws SERVE_QUEUE_FULL if there are too many, all of them too young to be judged */
  admit(): Place {
    if (this.#arrivals.places.length >= MAX_UNROUTED) this.#arrivals.makePlace();
    return new Place(this.#arrivals);
  }
}
