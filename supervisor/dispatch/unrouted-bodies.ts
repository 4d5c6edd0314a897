/**
 * Holds request bodies whose model or API key is not known yet, because it is in the body itself. They take no place in a
 * model's queue. Their number and size are bounded; when room runs short, the slowest of them is refused.
 */
import { ServeError } from '../../protocol/errors.js';
import { Arrivals, type Admission } from './arrivals.js';
import { ByteBudget } from './arrivals.js';

const MAX_PLACES = 64;
const MAX_BYTES = 128 * 1024 * 1024;

export class UnroutedBodies {
  readonly #arrivals = new Arrivals(
    new ByteBudget(MAX_BYTES),
    () => new ServeError('SERVE_QUEUE_FULL', undefined, { retryAfterS: 1 }),
  );

  /** @throws SERVE_QUEUE_FULL if there are too many, all of them too young to be judged */
  admit(): UnroutedBody {
    if (this.#arrivals.count >= MAX_PLACES) this.#arrivals.makePlace();
    return new UnroutedBody(this.#arrivals.add());
  }
}

/** A place for an unrouted body, which becomes one in a model's queue. */
export class UnroutedBody implements Admission {
  #place: Admission;
  #bytes = 0;
  #onEvicted: ((error: ServeError) => void) | null = null;

  constructor(place: Admission) {
    this.#place = place;
  }

  begin(onEvicted: (error: ServeError) => void): void {
    this.#onEvicted = onEvicted;
    this.#place.begin(onEvicted);
  }

  grow(bytes: number): void {
    this.#place.grow(bytes);
    this.#bytes += bytes;
  }

  complete(): void {
    this.#onEvicted = null;
    this.#place.complete();
  }

  release(): void {
    this.#place.release();
  }

  /** Moves to a place in a queue, where the body continues to arrive. @throws what `admit` throws */
  moveTo(admit: (bytes: number) => Admission): void {
    this.#place.release();
    this.#place = admit(this.#bytes);
    if (this.#onEvicted !== null) this.#place.begin(this.#onEvicted);
    this.#place.grow(this.#bytes);
  }
}
