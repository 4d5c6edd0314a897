/**
 * Keeps jobs in a Redis that many servers share: each of them, a front, accepts, runs and answers for all.
 *
 * The record in Redis is the truth of a job (`job-records.ts`, `scripts.ts`); BullMQ orders the ids of those that are due
 * (`bull-lines.ts`, `job-entries.ts`). A begin passes the fence of `job-begin.ts`. While a front runs a job it renews the lock
 * (`held-jobs.ts`); the front that sweeps finds the jobs of those that do not (`job-sweep.ts`). Fronts hear of each other's
 * changes by a subscription, and look each second (`front-look.ts`).
 */
import { randomUUID } from 'node:crypto';
import { within } from '../../machine/limit-timer.js';
import {
  hasEnded,
  type Acceptance,
  type BegunJob,
  type JobPage,
  type JobProgress,
  type JobRecord,
  type JobTarget,
  type KeptWebhook,
  type ListQuery,
  type NewJob,
  type Outcome,
  type WaitingPlace,
} from '../job-record.js';
import { cancelled, givenBack, settled, webhookEnded } from '../job-rules.js';
import { NO_LISTENER, type JobStore, type JobStoreListener, type KeepLimits } from '../job-store.js';
import { BullLines, type Entry } from './bull-lines.js';
import { FrontLook } from './front-look.js';
import { HeldJobs } from './held-jobs.js';
import { JobBegin } from './job-begin.js';
import { JobEntries } from './job-entries.js';
import { JobMoves } from './job-moves.js';
import { JobRecords, recordOf } from './job-records.js';
import { JobSweep } from './job-sweep.js';
import { KnownPlaces } from './known-places.js';
import { OwedWebhooks } from './owed-webhooks.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import type { Packages } from './load-packages.js';
import { RedisClock, type JobClock } from './redis-clock.js';
import type { RedisLink } from './redis-link.js';
import { frontName } from './scripts.js';

/**
 * Time after which a job of a front that does not renew it is another's. Waiting jobs need no lock, so only the jobs that a
 * front was running wait so long, until they are told to be lost. A front that is held up longer loses them, though it may
 * still run them: 5 s is more than twice the pauses that machines have (a moved virtual machine, a throttled container).
 */
export const LOCK_MS = 5000;

/** BullMQ's scripts take the body as a whole, and Redis holds up everyone meanwhile. */
export const MAX_BODY_BYTES = 16 * 1024 ** 2;

const RENEWALS_PER_LOCK = 4;

/** Longest time to leave. */
const CLOSE_LIMIT_MS = 2000;

export interface RedisStoreOptions {
  readonly packages: Packages;
  readonly link: RedisLink;
  /** Names the store, without its password. */
  readonly name: string;
  readonly limits: KeepLimits;
  readonly lockMs?: number;
  /** In place of the time of Redis, for tests. */
  readonly clock?: JobClock;
}

export class RedisStore implements JobStore {
  readonly name: string;
  readonly isDurable = true;
  #listener: JobStoreListener | null = null;
  /** For a listener that is not there yet. */
  readonly #news: ((listener: JobStoreListener) => void)[] = [];
  readonly #link: RedisLink;
  readonly #front: string;
  readonly #clock: JobClock;
  readonly #lockMs: number;
  readonly #known = new KnownPlaces();
  readonly #lines: BullLines;
  readonly #records: JobRecords;
  readonly #webhooks: OwedWebhooks;
  readonly #moves: JobMoves;
  readonly #entries: JobEntries;
  readonly #held: HeldJobs;
  readonly #begin: JobBegin;
  readonly #sweep: JobSweep;
  readonly #look: FrontLook;
  /** Begins that failed half-way. */
  readonly #takeBacks = new Map<Entry, string>();
  /** Outcomes whose storing has failed, or is under way. */
  readonly #unanswered = new Set<string>();
  /** Number of the last end of a job that this front has told of; null before the first look. */
  #lastEnd: number | null = null;
  /** Whether news may have been missed since the last look. */
  #isNewlyOpen = false;
  #renewal: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor({ packages, link, name, limits, lockMs = LOCK_MS, clock }: RedisStoreOptions) {
    this.name = name;
    this.#link = link;
    this.#front = frontName(link.database, randomUUID());
    this.#lockMs = lockMs;
    this.#clock = clock ?? new RedisClock((text) => this.warn(text));
    this.#lines = new BullLines(packages, link, lockMs);
    this.#records = new JobRecords(link, this.#front, limits.maxBytes, {
      onCount: (...count) => this.#known.set(...count),
    });
    this.#webhooks = new OwedWebhooks(link, this.#records, this.#front, (id) =>
      [...this.#unanswered].some((attempt) => attempt.endsWith(` ${id}`)),
    );
    this.#moves = new JobMoves(
      this.#records,
      this.#clock,
      () => this.listener,
      (record) => this.#webhooks.note(record),
    );
    this.#entries = new JobEntries(link, this.#lines, this.#records, this.#front);
    this.#held = new HeldJobs(link, this.#lines, lockMs, (id) => this.listener.onCancelled(id));
    this.#begin = new JobBegin({
      link,
      lines: this.#lines,
      records: this.#records,
      moves: this.#moves,
      entries: this.#entries,
      held: this.#held,
      known: this.#known,
      lockMs,
      takeBack: (entry, token) => this.#takeBack(entry, token),
    });
    this.#sweep = new JobSweep({
      link,
      front: this.#front,
      moves: this.#moves,
      entries: this.#entries,
      retentionMs: limits.retentionMs,
      onDue: ({ model }) => this.listener.onDue(model),
    });
    this.#look = new FrontLook(link, this.#front, this.#known, {
      onTime: (...time) => this.#clock.set(...time),
      onEnds: (end) => this.#onEnds(end),
      onPlaces: () => this.#wakeAll(),
      sweep: () => this.#sweep.run(this.#clock.now()),
      onFailed: (why) => this.#tell((listener) => listener.onFailed(why)),
      now: () => this.#clock.now(),
    });
  }

  get listener(): JobStoreListener {
    return this.#listener ?? NO_LISTENER;
  }

  set listener(listener: JobStoreListener) {
    this.#listener = listener;
    setImmediate(() => {
      for (const tell of this.#news.splice(0)) tell(listener);
    });
  }

  /** Tells the operator. */
  warn(text: string): void {
    this.#tell((listener) => listener.onWarning(text));
  }

  /** Redis is away, but the server starts. */
  beginAway(): void {
    this.#tell((listener) => listener.onFailed(this.#link.problem));
  }

  /** The connections are open, again. */
  onOpen(): void {
    this.#isNewlyOpen = true;
    this.#known.forgetLook();
    this.#webhooks.onOpen();
    this.#sweep.forget();
    void this.#renew();
    this.#look.start();
  }

  /** A message of another front: its name, then a line for each change. */
  onNews(message: string): void {
    const [front, ...lines] = message.split('\n');
    if (front === this.#front) return;
    for (const [i, line] of lines.entries()) this.#onLine(line[0] ?? '', line.slice(1), lines[i + 1] ?? '');
  }

  hasDue(model: string): boolean {
    return this.#known.hasDue(model);
  }

  waiting(target: JobTarget): number {
    return this.#known.waiting(target);
  }

  places(): readonly WaitingPlace[] {
    return this.#known.places();
  }

  async accept(job: NewJob): Promise<Acceptance> {
    if (job.body.bytes > MAX_BODY_BYTES) return { is: 'too large', maxBytes: MAX_BODY_BYTES };
    const nowMs = this.#clock.now();
    const offMs = nowMs - Date.now();
    const record = {
      ...job.record,
      createdAt: job.record.createdAt + offMs,
      dueAt: job.record.dueAt + offMs,
    };
    const acceptance = await this.#records.accept({ ...job, record }, nowMs);
    if (acceptance.is !== 'accepted') return acceptance;
    job.body.release();
    if (record.dueAt <= nowMs) {
      this.#entries.add(record);
      this.listener.onDue(record.model);
    }
    return acceptance;
  }

  withdraw(id: string): Promise<void> {
    return this.#records.withdraw(id); // the entry is dropped by the front that fetches it
  }

  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    return this.#begin.run(target, token);
  }

  async giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    const moved = await this.#moves.move(id, (was, nowMs) =>
      was.token === token ? { record: givenBack(was.record, isLoss, nowMs), token: '', isUnrun: true } : null,
    );
    const entry = this.#held.take(id, token);
    if (moved === null) return;
    const { record } = moved;
    if (entry === null) this.#entries.addMissing(id, this.#clock.now());
    else if (hasEnded(record)) this.#entries.release(entry);
    else this.#entries.putBack(record, entry);
    if (!hasEnded(record)) this.listener.onDue(record.model);
  }

  async settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    const attempt = `${token} ${id}`;
    const settling = this.#settle(id, token, outcome, this.#unanswered.has(attempt));
    this.#unanswered.add(attempt);
    const record = await settling;
    this.#unanswered.delete(attempt);
    return record;
  }

  /** `isRepeated`: an answer of Redis was lost; it may have stored this outcome. */
  async #settle(id: string, token: string, outcome: Outcome, isRepeated: boolean): Promise<JobRecord | null> {
    const body = 'error' in outcome || (outcome.body?.length ?? 0) > MAX_BODY_BYTES ? null : outcome.body;
    let repeated: JobRecord | null = null;
    const moved = await this.#moves.move(id, (was, nowMs) => {
      repeated = isRepeated && was.settledToken === token ? was.record : null;
      if (repeated !== null) this.#webhooks.note(repeated);
      if (was.token !== token) return null;
      const ifDropped = settled(was.record, outcome, nowMs, true);
      if (body === null) return { record: ifDropped, token: '', settledToken: token };
      const record = settled(was.record, outcome, nowMs, false);
      return { record, token: '', settledToken: token, result: { body, ifDropped } };
    });
    const entry = this.#held.take(id, token);
    if (entry !== null) this.#entries.release(entry);
    return moved?.record ?? repeated;
  }

  progress(id: string, token: string, progress: JobProgress): void {
    this.#records.progress(id, token, progress).then(
      (record) => {
        if (record !== null) this.listener.onChanged(record);
      },
      () => {}, // the next one follows
    );
  }

  async cancel(id: string): Promise<JobRecord | null> {
    let before: JobRecord | null = null;
    const moved = await this.#moves.move(id, (was, nowMs) => {
      before = was.record;
      const isCancel = was.record.state === 'running';
      if (hasEnded(was.record)) return null;
      return { record: cancelled(was.record, nowMs), token: was.token, isUnrun: true, isCancel };
    });
    if (moved?.was.record.state === 'queued') this.#entries.remove(moved.was.line, id);
    if (moved?.was.record.state === 'running') this.listener.onCancelled(id);
    return before;
  }

  async get(id: string): Promise<JobRecord | null> {
    return (await this.#records.read(id))?.record ?? null;
  }

  async probe(): Promise<void> {
    await this.#link.run('probe', []);
  }

  readResult(id: string): Promise<Buffer | null> {
    return this.#records.readResult(id);
  }

  list(query: ListQuery): Promise<JobPage> {
    return this.#records.list(query);
  }

  owe(webhook: Webhook): Promise<void> {
    return this.#webhooks.owe(webhook);
  }

  forgetWebhook(id: string): Promise<void> {
    return this.#webhooks.forget(id);
  }

  async endWebhook(jobId: string): Promise<void> {
    await this.#moves.move(jobId, ({ record }) =>
      hasEnded(record) && record.end.owesWebhook
        ? { record: webhookEnded(record), token: '', isWebhookEnd: true }
        : null,
    );
    this.#webhooks.forgetOf(jobId);
  }

  takeWebhooks(limit: number): Promise<readonly KeptWebhook[]> {
    return this.#webhooks.take(limit);
  }

  /** Changes nothing: others run what is queued. */
  stop(): Promise<void> {
    return Promise.resolve();
  }

  /** Others run what is queued. */
  queuedHere(): readonly string[] {
    return [];
  }

  /** Resolves once nothing that this store has begun by itself is under way. */
  async idle(): Promise<void> {
    await this.#look.idle();
    await this.#entries.settled();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#renewal !== null) clearTimeout(this.#renewal);
    this.#look.close();
    const leave = async (): Promise<void> => {
      await this.idle();
      await this.#link.run('leave', [this.#front]).catch(() => {}); // the lease expires
      await this.#lines.close();
    };
    await within(CLOSE_LIMIT_MS, this.#link.isReady ? leave() : this.#lines.close());
    this.#link.close();
  }

  #tell(tell: (listener: JobStoreListener) => void): void {
    if (this.#listener === null) this.#news.push(tell);
    else tell(this.#listener);
  }

  #onLine(kind: string, text: string, next: string): void {
    if (kind === 'r') this.listener.onChanged(recordOf(text, next.startsWith('g') ? next.slice(1) : ''));
    else if (kind === 'c') this.listener.onCancelled(text);
    else if (kind === 'd') this.listener.onDue(text);
    else if (kind === 'p') {
      const [, count, version, place] = /^(\d+) (\d+) (.*)$/.exec(text) ?? [];
      if (place !== undefined) this.#known.set(place, Number(count), Number(version));
    }
  }

  #wakeAll(): void {
    for (const model of new Set(this.#known.places().map((place) => place.model))) this.listener.onDue(model);
  }

  /** Jobs may have ended while this front could not hear. */
  #onEnds(end: number): void {
    const [last, mayHaveMissed] = [this.#lastEnd, this.#isNewlyOpen];
    this.#lastEnd = end;
    this.#isNewlyOpen = false;
    if (last === null || last === end || !mayHaveMissed) return;
    this.#records.endedBetween(last, end).then(
      (records) => {
        for (const record of records) this.listener.onChanged(record);
      },
      () => {}, // those who wait ask again
    );
  }

  /** Renews the locks, then again and again. */
  async #renew(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#renewal !== null) clearTimeout(this.#renewal);
    this.#renewal = setTimeout(() => void this.#renew(), this.#lockMs / RENEWALS_PER_LOCK).unref();
    if (!this.#link.isReady) return;
    await this.#held.renew().catch(() => {}); // the locks are renewed the next time, or set again
    for (const [entry, token] of [...this.#takeBacks]) await this.#tryTakeBack(entry, token);
  }

  #takeBack(entry: Entry, token: string): void {
    this.#held.add(entry, token); // so that it is not lost meanwhile
    this.#takeBacks.set(entry, token);
    void this.#tryTakeBack(entry, token);
  }

  /** If the mark is not there, it must not come late: without BullMQ's lock it cannot. */
  async #tryTakeBack(entry: Entry, token: string): Promise<void> {
    try {
      await this.giveBack(entry.id, token, false);
      const found = await this.#records.read(entry.id);
      if (found?.token === token) {
        this.#held.add(entry, token); // the mark has come in between
        return;
      }
      if (found?.record.state === 'queued') await this.#lines.putBack(entry);
      else await this.#lines.release(entry);
      this.#takeBacks.delete(entry);
    } catch {
      // the next renewal tries again
    }
  }
}
