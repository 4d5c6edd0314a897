/**
 * A server's work for all of them, once a second and in one command: looks which jobs are due, ends those that have expired
 * or whose server has died, and drops those whose time is over. Two servers may do it at once, since each change is one step.
 * The same look finds out that Redis does not answer: then the connections are dropped, which ends all commands under way.
 */
import { describeThrown } from '../../../protocol/errors.js';
import { startLimit } from '../../machine/limit-timer.js';
import { formatMs } from '../../options/units.js';
import { expired, expiresAt } from '../job-rules.js';
import type { JobSteps } from './job-steps.js';

const LOOK_MS = 1000;

/** Redis is taken as away after this time without an answer. */
const LOOK_LIMIT_MS = 3000;

/** One server of all drops ended jobs. */
const CLEAN_MS = 900;

/** After a restart of Redis every server sets the locks of its jobs again, before one without a lock is called lost. */
const SUSPECT_MS = 2000;

/** A clock that is further off that of Redis is told to its operator. */
const MAX_OFF_MS = 1000;

/** Each queue is searched for jobs without a lock so often. */
const LOOKS_PER_LOCK = 5;

const LEAST_WAIT_MS = 1;

/** At a look so many jobs expire at most; then the next one follows at once. */
const MOST_EXPIRED = 200;

type Reply = readonly [
  queues: readonly (readonly [queue: string, due: number, nextDueMs: string, stalled: readonly string[]])[],
  expired: readonly string[],
  nextExpiryMs: string,
  time: readonly [seconds: string, micros: string],
];

export class Upkeep {
  readonly #steps: JobSteps;
  readonly #onFirstLook: (queues: readonly string[], redisMs: number) => void;
  #timer: NodeJS.Timeout | null = null;
  #underWay: Promise<void> | null = null;
  /** Since when no lock is judged, on the monotonic clock, and the time of the last look. */
  #openedAt = 0;
  #lookedAtMs = Infinity;
  #isFirst = true;
  #hasWarned = false;
  #isClosed = false;

  /** `onFirstLook`: called at the first look since the connections are open. */
  constructor(steps: JobSteps, onFirstLook: (queues: readonly string[], redisMs: number) => void) {
    this.#steps = steps;
    this.#onFirstLook = onFirstLook;
  }

  /** The connections are open, again. */
  open(): void {
    this.#openedAt = performance.now();
    this.#isFirst = true;
    this.start();
  }

  /** Looks now, then again and again. */
  start(): void {
    if (this.#isClosed || this.#underWay !== null) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#underWay = this.#look().then((nextMs) => {
      this.#underWay = null;
      if (!this.#isClosed) this.#timer = setTimeout(() => this.start(), nextMs).unref();
    });
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
    const { link, limits, held, lockMs, tell, counts } = this.#steps.parts;
    const limit = startLimit(LOOK_LIMIT_MS, () =>
      link.reset(`it did not answer within ${formatMs(LOOK_LIMIT_MS)}`),
    );
    try {
      const nowMs = Date.now();
      // This process was frozen, or its machine: the locks of others may have expired as its own have.
      if (nowMs - this.#lookedAtMs > LOOK_LIMIT_MS) this.#openedAt = performance.now();
      this.#lookedAtMs = nowMs;
      const mayLose = performance.now() - this.#openedAt >= SUSPECT_MS;
      if (mayLose) held.renew().catch(() => {}); // before the look, on the same connection: its own jobs have locks
      const searchMs = mayLose ? lockMs / LOOKS_PER_LOCK : '';
      const args = [nowMs, CLEAN_MS, limits.retentionMs, MOST_EXPIRED, searchMs];
      const sentMs = timeMs();
      const [queues, over, nextExpiryMs, time] = (await link.run('look', args)) as Reply;
      limit.stop(); // what follows is this server's own work
      this.#noteTime(
        queues.map(([name]) => name),
        sentMs,
        time,
      );
      counts.note(queues);
      for (const model of new Set(counts.places().map((place) => place.model))) tell('onDue', model);
      await Promise.all(over.map((id) => this.#expire(id)));
      if (mayLose) await Promise.all(queues.flatMap(([, , , ids]) => ids.map((id) => this.#decide(id))));
      const times = [nextExpiryMs, ...queues.map(([, , nextDueMs]) => nextDueMs)];
      if (over.length >= MOST_EXPIRED) return LEAST_WAIT_MS;
      const nextMs = Math.min(...times.map((text) => (text === '' ? Infinity : Number(text))));
      return Math.min(LOOK_MS, Math.max(LEAST_WAIT_MS, nextMs - Date.now()));
    } catch (error) {
      if (!this.#isClosed) tell('onFailed', describeThrown(error).message);
      return LOOK_MS;
    } finally {
      limit.stop();
    }
  }

  async #expire(id: string): Promise<void> {
    const nowMs = Date.now();
    const job = await this.#steps.read(id);
    if (job?.record.state === 'queued' && expiresAt(job.record) <= nowMs)
      await this.#steps.moveWaiting(job, expired(job.record, nowMs));
    else await this.#steps.parts.link.run('keepOn', [id]);
  }

  /** A job whose server lets its lock expire is lost, or tried again. */
  async #decide(id: string): Promise<void> {
    const job = this.#steps.parts.held.runs(id) ? null : await this.#steps.read(id);
    if (job !== null) await this.#steps.lose(job);
  }

  #noteTime(queues: readonly string[], sentMs: number, [seconds, micros]: Reply[3]): void {
    const redisMs = Number(seconds) * 1000 + Number(micros) / 1000;
    if (this.#isFirst) this.#onFirstLook(queues, redisMs);
    this.#isFirst = false;
    // Redis has read its clock between the request and its answer, and either may have been late.
    const offMs = Math.round(Math.min(0, timeMs() - redisMs) + Math.max(0, sentMs - redisMs));
    if (Math.abs(offMs) <= MAX_OFF_MS) this.#hasWarned = false;
    else if (!this.#hasWarned) {
      this.#hasWarned = true;
      const side = offMs > 0 ? 'ahead of' : 'behind';
      this.#steps.parts.tell(
        'onWarning',
        `the clock of this machine is ${Math.abs(offMs)} ms ${side} that of Redis: all servers need one time`,
      );
    }
  }
}

function timeMs(): number {
  return performance.timeOrigin + performance.now();
}
