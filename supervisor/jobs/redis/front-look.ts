/**
 * Looks, once a second, at the time, at the places where jobs wait, and at which front sweeps, in one command. The same look
 * finds out that Redis does not answer: then the connections are dropped, which ends all commands under way.
 */
import { describeThrown } from '../../../protocol/errors.js';
import { startLimit } from '../../machine/limit-timer.js';
import { formatMs } from '../../options/units.js';
import type { KnownPlaces } from './known-places.js';
import type { RedisLink } from './redis-link.js';

export interface LookListener {
  /** `sentAtMs`, `gotAtMs`: on the monotonic clock. */
  onTime(redisMs: number, sentAtMs: number, gotAtMs: number): void;
  /** Number of the last end of a job. */
  onEnds(end: number): void;
  /** The places are known now. */
  onPlaces(): void;
  /** This front is the one that sweeps; resolves with the time of the next sweep. */
  sweep(): Promise<number>;
  onFailed(why: string): void;
  now(): number;
}

const LOOK_MS = 1000;

/** Redis is taken as away after this time without an answer. */
const LOOK_LIMIT_MS = 3000;

/** The front that sweeps keeps the lease so long after its last look. */
const LEASE_MS = 3000;

const LEAST_WAIT_MS = 1;

export class FrontLook {
  readonly #link: RedisLink;
  readonly #front: string;
  readonly #known: KnownPlaces;
  readonly #listener: LookListener;
  #timer: NodeJS.Timeout | null = null;
  #underWay: Promise<void> | null = null;
  #isClosed = false;

  constructor(link: RedisLink, front: string, known: KnownPlaces, listener: LookListener) {
    this.#link = link;
    this.#front = front;
    this.#known = known;
    this.#listener = listener;
  }

  /** Looks now, then again and again. */
  start(): void {
    if (this.#isClosed || this.#underWay !== null) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const underWay = this.#look().then((nextMs) => {
      this.#underWay = null;
      if (!this.#isClosed) this.#timer = setTimeout(() => this.start(), nextMs).unref();
    });
    this.#underWay = underWay;
  }

  /** Resolves when no look is under way. */
  async idle(): Promise<void> {
    await this.#underWay;
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Resolves with the time until the next look. */
  async #look(): Promise<number> {
    const limit = startLimit(LOOK_LIMIT_MS, () =>
      this.#link.reset(`it did not answer within ${formatMs(LOOK_LIMIT_MS)}`),
    );
    try {
      const leads = await this.#ask();
      const dueMs = leads ? await this.#listener.sweep() : Infinity;
      return Math.min(LOOK_MS, Math.max(LEAST_WAIT_MS, dueMs - this.#listener.now()));
    } catch (error) {
      if (!this.#isClosed) this.#listener.onFailed(describeThrown(error).message);
      return LOOK_MS;
    } finally {
      limit.stop();
    }
  }

  /** Resolves with whether this front has the lease. */
  async #ask(): Promise<boolean> {
    const sentAtMs = performance.now();
    const [sentAt, lookedAt] = [this.#known.moment(), this.#known.lookedAt];
    const args = [this.#front, String(LEASE_MS), String(lookedAt)];
    const reply = await this.#link.run('look', args);
    const [seconds, micros, leads, version, ends, places] = reply as [
      string,
      string,
      number,
      string,
      string,
      string[],
    ];
    this.#listener.onTime(Number(seconds) * 1000 + Number(micros) / 1000, sentAtMs, performance.now());
    if (Number(version) !== lookedAt) this.#known.replace(countsIn(places), Number(version), sentAt);
    this.#listener.onPlaces();
    this.#listener.onEnds(Number(ends));
    return leads === 1;
  }
}

function countsIn(places: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (let i = 0; i < places.length; i += 2) counts.set(places[i] as string, Number(places[i + 1]));
  return counts;
}
