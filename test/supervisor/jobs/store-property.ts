/** Random histories of a store of jobs against a model, with a mocked clock. The rules are the same; the store is not. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../protocol/errors.js';
import { hasEnded, keptError, type JobRecord, type Outcome } from '../../../supervisor/jobs/job-record.js';
import {
  begun,
  cancelled,
  expired,
  expiresAt,
  givenBack,
  settled,
} from '../../../supervisor/jobs/job-rules.js';
import type { JobStore, KeepLimits } from '../../../supervisor/jobs/job-store.js';
import { pass } from './conformance.js';
import { HEAD, newStoredJob } from './stored-jobs.js';

export interface TestedStore {
  readonly store: JobStore;
  /** Resolves when the store does nothing by itself. */
  readonly idle?: () => Promise<void>;
  /** Lets it look at the clock; left out for a store that does so at each begin. */
  readonly look?: () => Promise<void>;
  /** Opens it again as after a kill of its process; left out for a store that ends with its process. */
  readonly crash?: () => Promise<TestedStore>;
  close(): Promise<void>;
}

/**
 * The order of jobs of one priority. `accepted`: in order of acceptance. `due`: a store of many processes has those that became
 * due at different times in any order, and a job that was given back goes first.
 */
export type OrderRule = 'accepted' | 'due';

const LIMITS: KeepLimits = { retentionMs: 1e9, maxBytes: 1e9 };

const ROUTES = ['/', '/two'];

const pick = fc.nat(20);

const accept = fc.record({
  is: fc.constant('accept' as const),
  priority: fc.nat(2),
  delayMs: fc.constantFrom(0, 0, 1000),
  ttlMs: fc.constantFrom(500, 100_000),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  route: fc.constantFrom(...ROUTES),
  isPinned: fc.boolean(),
});

const begin = fc.record({
  is: fc.constant('begin' as const),
  most: fc.integer({ min: 1, max: 3 }),
  isDefault: fc.boolean(),
});

const step = fc.oneof(
  { arbitrary: accept, weight: 4 },
  { arbitrary: begin, weight: 4 },
  fc.record({ is: fc.constantFrom('answer' as const, 'fail' as const, 'stale' as const), pick }),
  fc.record({ is: fc.constant('give back' as const), pick, isLoss: fc.boolean() }),
  fc.record({ is: fc.constant('cancel' as const), pick }),
  fc.record({ is: fc.constant('pass' as const), ms: fc.nat(3000) }),
  fc.record({ is: fc.constant('jump' as const), ms: fc.integer({ min: -5000, max: 20_000 }) }),
  fc.record({ is: fc.constant('crash' as const) }),
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Modelled {
  record: JobRecord;
  readonly order: number;
  isDue: boolean;
  token: string;
}

/** Every job in a list, looked through from the start each time. */
class Model {
  readonly jobs: Modelled[] = [];

  accept(record: JobRecord): void {
    this.jobs.push({ record, order: this.jobs.length, isDue: record.dueAt <= Date.now(), token: '' });
  }

  /** The jobs that begin now, by id. */
  next(most: number, isDefault: boolean): string[] {
    const waiting = this.#waiting(isDefault);
    const taken = waiting.filter(({ record }) => record.route === waiting[0]?.record.route).slice(0, most);
    return taken.map(({ record }) => record.id);
  }

  /** Whether these may begin now, in this order, in a store of many processes: as many as can, the most urgent first. */
  mayBegin(ids: readonly string[], most: number, isDefault: boolean): boolean {
    const waiting = this.#waiting(isDefault);
    const byId = new Map(waiting.map((job) => [job.record.id, job.record]));
    const begun = ids.flatMap((id) => byId.get(id) ?? []);
    if (begun.length !== ids.length || new Set(ids).size !== ids.length) return false;
    if (begun[0] === undefined) return waiting.length === 0;
    const { route, priority } = begun[0];
    const urgencies = waiting.filter((job) => job.record.route === route).map((job) => job.record.priority);
    const expected = urgencies.slice(0, most);
    return (
      priority === waiting[0]?.record.priority &&
      begun.every((record, i) => record.route === route && record.priority === expected[i]) &&
      begun.length === expected.length
    );
  }

  begin(ids: readonly string[], token: string): void {
    for (const job of this.jobs) {
      if (!ids.includes(job.record.id)) continue;
      job.record = begun(job.record, '1', Date.now());
      job.token = token;
    }
  }

  /** The most urgent first, then in order of acceptance. */
  #waiting(isDefault: boolean): Modelled[] {
    this.tick();
    return this.jobs
      .filter(
        ({ record, isDue }) => record.state === 'queued' && isDue && (!record.isPinned ? isDefault : true),
      )
      .sort((a, b) => b.record.priority - a.record.priority || a.order - b.order);
  }

  settle(job: Modelled, outcome: Outcome): void {
    this.#become(job, settled(job.record, outcome, Date.now(), false));
  }

  giveBack(job: Modelled, isLoss: boolean): void {
    this.#become(job, givenBack(job.record, isLoss, Date.now()));
  }

  cancel(job: Modelled): void {
    job.record = cancelled(job.record, Date.now());
  }

  tick(): void {
    const nowMs = Date.now();
    for (const job of this.jobs) {
      if (job.record.state !== 'queued') continue;
      if (expiresAt(job.record) <= nowMs) job.record = expired(job.record, nowMs);
      else job.isDue ||= job.record.dueAt <= nowMs;
    }
  }

  crash(): void {
    for (const job of this.jobs) {
      const { state, begunAt, createdAt } = job.record;
      const error = keptError(new ServeError('SERVE_WORKER_LOST'));
      if (state === 'running')
        this.settle(job, { error, runMs: 0, queueMs: (begunAt ?? createdAt) - createdAt });
    }
  }

  #become(job: Modelled, record: JobRecord): void {
    job.record = record;
    job.isDue = record.dueAt <= Date.now();
  }
}

/** The fields that do not depend on the words of an error. */
function facts(record: JobRecord | null): unknown {
  const { end = null, ...rest } = record ?? {};
  return { ...rest, end: end && { ...end, error: end.error?.code ?? null } };
}

class History {
  readonly #model = new Model();
  readonly #rule: OrderRule;
  #tested: TestedStore;
  #begins = 0;
  readonly ends = new Map<string, unknown>();

  constructor(tested: TestedStore, rule: OrderRule) {
    this.#tested = tested;
    this.#rule = rule;
  }

  async apply(one: Step): Promise<void> {
    const { store, crash } = this.#tested;
    const { jobs } = this.#model;
    switch (one.is) {
      case 'accept': {
        const job = newStoredJob({ ...one, id: `job ${jobs.length}`, createdAt: Date.now() });
        assert.equal((await store.accept(job)).is, 'accepted');
        return this.#model.accept(job.record);
      }
      case 'begin': {
        const token = `mark ${(this.#begins += 1)}`;
        const { most, isDefault } = one;
        const routes = new Map(ROUTES.map((route) => [route, most]));
        await this.#tested.idle?.();
        if (this.#rule === 'due') await this.#look();
        const begun = await store.begin({ model: 'm', version: '1', isDefault, routes }, token);
        const ids = begun.map(({ record }) => record.id);
        if (this.#rule === 'due') assert.ok(this.#model.mayBegin(ids, most, isDefault), ids.join(' '));
        else assert.deepEqual(ids, this.#model.next(most, isDefault));
        return this.#model.begin(ids, token);
      }
      case 'pass':
        await pass(one.ms);
        await this.#look(); // a timer is a millisecond late where a clock was set back
        return this.#model.tick();
      case 'jump':
        mock.timers.setTime(Math.max(0, Date.now() + one.ms));
        await this.#look();
        return this.#model.tick();
      case 'crash':
        if (crash === undefined) return;
        this.#tested = await crash();
        return this.#model.crash();
      case 'cancel': {
        const job = jobs[one.pick % Math.max(1, jobs.length)];
        if (job === undefined) return;
        await store.cancel(job.record.id);
        return this.#model.cancel(job);
      }
      default:
        return this.#end(one);
    }
  }

  /** Every job is as the model says, and none that has ended changes. */
  async check(): Promise<void> {
    const { store } = this.#tested;
    for (const { record } of this.#model.jobs) {
      const kept = facts(await store.get(record.id));
      assert.deepEqual(kept, facts(record));
      if (hasEnded(record)) assert.deepEqual(kept, this.ends.get(record.id) ?? kept);
      if (hasEnded(record)) this.ends.set(record.id, kept);
    }
    const routes = new Map(ROUTES.map((route) => [route, 1]));
    assert.equal(
      store.waiting({ model: 'm', version: '1', isDefault: true, routes }),
      this.#model.jobs.filter(({ record, isDue }) => record.state === 'queued' && isDue).length,
    );
  }

  close(): Promise<void> {
    return this.#tested.close();
  }

  /** Lets the store look at the clock. */
  async #look(): Promise<void> {
    const { store, look } = this.#tested;
    if (look !== undefined) return look();
    await store.begin({ model: 'm', version: '1', isDefault: true, routes: new Map() }, 'looks');
  }

  async #end(one: Extract<Step, { readonly pick: number }>): Promise<void> {
    const { store } = this.#tested;
    const running = this.#model.jobs.filter(({ record }) => record.state === 'running');
    const job = running[one.pick % Math.max(1, running.length)];
    if (job === undefined) return;
    const { id } = job.record;
    if (one.is === 'give back') {
      await store.giveBack(id, job.token, one.isLoss);
      return this.#model.giveBack(job, one.isLoss);
    }
    const times = { runMs: 1, queueMs: 2 };
    const outcome: Outcome =
      one.is === 'fail'
        ? { ...times, error: keptError(new ServeError('SERVE_INFERENCE_FAILED')) }
        : { ...times, head: HEAD, bytes: 1, body: Buffer.from('1') };
    const token = one.is === 'stale' ? 'mark 0' : job.token;
    const record = await store.settle(id, token, outcome);
    assert.equal(record === null, one.is === 'stale');
    if (one.is !== 'stale') this.#model.settle(job, outcome);
  }
}

/** A job that was due stays so. */
const CLOCK_SET_BACK: Step[] = [
  { is: 'accept', priority: 0, delayMs: 0, ttlMs: 500, maxAttempts: 1, route: '/', isPinned: false },
  { is: 'jump', ms: -1 },
  { is: 'begin', most: 1, isDefault: true },
];

/** Defines the test for one kind of store. */
export function followsModel(
  name: string,
  open: (limits: KeepLimits) => Promise<TestedStore>,
  numRuns: number,
  rule: OrderRule = 'accepted',
): void {
  test(`${name}: whatever happens, every job is as a model of lists says`, { timeout: 240_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
        const history = new History(await open(LIMITS), rule);
        try {
          for (const one of steps) {
            await history.apply(one);
            await history.check();
          }
        } finally {
          await history.close();
          mock.timers.reset();
        }
      }),
      { numRuns, examples: [[CLOCK_SET_BACK]] },
    );
  });
}
