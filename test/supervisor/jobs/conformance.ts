/** The promises of every store of jobs, with a mocked clock. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import {
  hasEnded,
  keptError,
  type JobRecord,
  type KeptWebhook,
} from '../../../supervisor/jobs/job-record.js';
import type { JobStore, KeepLimits } from '../../../supervisor/jobs/job-store.js';
import { eventually } from '../../helpers/server.js';
import { newStoredJob, HEAD, type StoredOptions } from './stored-jobs.js';

export interface OpenStore {
  readonly store: JobStore;
  /** Resolves when the store does nothing by itself. */
  readonly idle?: () => Promise<void>;
  close(): Promise<void>;
}

/** A store, with notes of what it tells its listener. */
export class StoreBench {
  readonly store: JobStore;
  readonly due: string[] = [];
  readonly changed: JobRecord[] = [];
  readonly moved: string[] = [];
  readonly endedUnrun: JobRecord[] = [];
  readonly cancelled: string[] = [];
  #count = 0;

  constructor(store: JobStore) {
    this.store = store;
    store.listener = {
      onDue: (model) => this.due.push(model),
      onChanged: (record) => this.changed.push(record),
      onMoved: (id) => this.moved.push(id),
      onCancelled: (id) => this.cancelled.push(id),
      onEndedUnrun: (record) => this.endedUnrun.push(record),
      onFailed: (why) => assert.fail(why),
      onWarning: (text) => assert.fail(text),
    };
  }

  /** Returns its id. */
  async accept(options: StoredOptions = {}): Promise<string> {
    this.#count += 1;
    const job = newStoredJob({ id: `job ${this.#count}`, createdAt: Date.now(), ...options });
    const acceptance = await this.store.accept(job);
    assert.ok(acceptance.is === 'accepted' || acceptance.is === 'known', acceptance.is);
    return acceptance.record.id;
  }

  /** Begins the next jobs, and returns their ids. */
  async begin(token = 'mark', target: Partial<Parameters<JobStore['begin']>[0]> = {}): Promise<string[]> {
    const all = { model: 'm', version: '1', isDefault: true, routes: new Map([['/', 1]]), ...target };
    return (await this.store.begin(all, token)).map(({ record }) => record.id);
  }

  answer(id: string, token = 'mark', body = '1'): Promise<JobRecord | null> {
    const bytes = Buffer.from(body);
    return this.store.settle(id, token, {
      head: HEAD,
      bytes: bytes.length,
      body: bytes,
      runMs: 1,
      queueMs: 2,
    });
  }

  fail(
    id: string,
    token = 'mark',
    error = new ServeError('SERVE_INFERENCE_FAILED'),
  ): Promise<JobRecord | null> {
    return this.store.settle(id, token, { error: keptError(error), runMs: 1, queueMs: 2 });
  }

  async record(id: string): Promise<JobRecord> {
    const record = await this.store.get(id);
    assert.ok(record !== null, `${id} is known`);
    return record;
  }

  async state(id: string): Promise<string> {
    return (await this.record(id)).state;
  }

  waiting(target = {}): number {
    return this.store.waiting({
      model: 'm',
      version: '1',
      isDefault: true,
      routes: new Map([['/', 1]]),
      ...target,
    });
  }
}

export const LIMITS: KeepLimits = { retentionMs: 60_000, maxBytes: 100_000 };

/** The open store's. */
let idle = (): Promise<void> => Promise.resolve();

/** Lets time pass; what the store does then is done when this resolves. */
export async function pass(ms: number): Promise<void> {
  await idle();
  mock.timers.tick(ms);
  for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve));
  await idle();
}

/** Defines the tests for one kind of store. */
export function conformance(name: string, open: (limits: KeepLimits) => Promise<OpenStore>): void {
  const promise = (
    title: string,
    run: (bench: StoreBench) => Promise<void>,
    limits: Partial<KeepLimits> = {},
  ): void => {
    test(`${name}: ${title}`, { timeout: 240_000 }, async () => {
      mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
      const opened = await open({ ...LIMITS, ...limits });
      idle = opened.idle ?? (() => Promise.resolve());
      try {
        await run(new StoreBench(opened.store));
      } finally {
        await opened.close();
        mock.timers.reset();
      }
    });
  };

  promise('a job waits, is marked, and ends once; a record is data', async (bench) => {
    const id = await bench.accept({ body: '{"x":1}', headers: 'X-A\n1' });
    assert.deepEqual([await bench.state(id), bench.waiting(), bench.due], ['queued', 1, ['m']]);
    await pass(10);
    const [begun] = await bench.store.begin(
      { model: 'm', version: '1', isDefault: true, routes: new Map([['/', 4]]) },
      'mark',
    );
    assert.deepEqual(
      [begun?.record.id, begun?.call.headers, begun?.pieces.join('')],
      [id, 'X-A\n1', '{"x":1}'],
    );
    const running = await bench.record(id);
    assert.deepEqual([running.state, running.attempts, running.begunAt], ['running', 1, 1_000_010]);
    assert.deepEqual([bench.waiting(), await bench.begin()], [0, []]);
    await pass(10);
    const ended = await bench.answer(id, 'mark', '"out"');
    assert.deepEqual(ended, await bench.record(id));
    assert.deepEqual(structuredClone(ended), ended);
    const { end, progress } = ended;
    assert.deepEqual(end, {
      endedAt: 1_000_020,
      runMs: 1,
      queueMs: 2,
      result: { head: HEAD, bytes: 5, isDropped: false },
      error: null,
      owesWebhook: false,
    });
    assert.deepEqual(progress, { fraction: 1, text: '' });
    assert.equal((await bench.store.readResult(id))?.toString(), '"out"');
    assert.equal(await bench.answer(id), null, 'it has ended');
    assert.deepEqual([await bench.store.get('none'), await bench.store.readResult('none')], [null, null]);
    assert.deepEqual(
      bench.changed.map(({ state }) => state),
      ['running', 'succeeded'],
    );
  });

  promise('only the attempt with the mark ends a job or gives it back', async (bench) => {
    const id = await bench.accept();
    await bench.begin('first');
    await bench.store.giveBack(id, 'wrong', true);
    assert.equal(await bench.answer(id, 'wrong'), null);
    await bench.store.giveBack(id, 'first', true);
    const waiting = await bench.record(id);
    assert.deepEqual(
      [waiting.state, waiting.attempts, waiting.losses, waiting.begunAt],
      ['queued', 0, 1, null],
    );
    assert.deepEqual(await bench.begin('second'), [id]);
    assert.deepEqual([await bench.answer(id, 'first'), await bench.state(id)], [null, 'running']);
    assert.equal((await bench.answer(id, 'second'))?.state, 'succeeded');
  });

  promise(
    'a job fails with the second worker that dies before it begins it, in each attempt',
    async (bench) => {
      const id = await bench.accept({ maxAttempts: 2 });
      await bench.begin();
      await bench.store.giveBack(id, 'mark', true);
      await bench.begin();
      await bench.fail(id);
      await pass(1000);
      for (const losses of [1, 2]) {
        assert.equal((await bench.record(id)).state, 'queued');
        await bench.begin();
        await bench.store.giveBack(id, 'mark', true);
        assert.equal((await bench.record(id)).losses, losses);
      }
      const { state, attempts, begunAt, end } = await bench.record(id);
      assert.deepEqual([state, attempts, end?.error?.code], ['failed', 1, 'SERVE_NOT_BEGUN']);
      assert.notEqual(begunAt, null, 'its first attempt has begun');
      assert.deepEqual([bench.endedUnrun.length, bench.waiting()], [1, 0]);
    },
  );

  promise(
    'the most urgent goes first, then the one accepted first, also after it was given back',
    async (bench) => {
      const [a, b] = [await bench.accept(), await bench.accept()];
      const urgent = await bench.accept({ priority: 9 });
      const began = [...(await bench.begin('1')), ...(await bench.begin('2'))];
      await bench.store.giveBack(a, '2', false);
      assert.deepEqual(
        [...began, ...(await bench.begin('3')), ...(await bench.begin('4'))],
        [urgent, a, a, b],
      );
    },
  );

  promise('jobs of one route begin together, as many as may', async (bench) => {
    const one = await bench.accept();
    const other = await bench.accept({ route: '/other' });
    const two = await bench.accept({ isPinned: true });
    const three = await bench.accept();
    const routes = new Map([
      ['/', 2],
      ['/other', 2],
    ]);
    assert.equal(bench.waiting({ routes }), 4);
    const next = (): Promise<string[]> => bench.begin('mark', { routes });
    assert.deepEqual(
      [await next(), await next(), await next(), await next()],
      [[one, two], [other], [three], []],
    );
  });

  promise('a job waits for the version that its caller named, else for the default one', async (bench) => {
    const pinned = await bench.accept({ version: '1', isPinned: true });
    const free = await bench.accept({ version: '1' });
    const two = { version: '2', isDefault: true };
    assert.deepEqual([bench.waiting(two), bench.waiting({ isDefault: false })], [1, 1]);
    assert.deepEqual(await bench.begin('mark', { isDefault: false }), [pinned]);
    assert.deepEqual(await bench.begin('mark', two), [free]);
    assert.equal((await bench.record(free)).version, '2');
    assert.deepEqual([await bench.accept({ model: 'other' }), bench.waiting()], ['job 3', 0]);
    assert.deepEqual(bench.store.places(), [{ model: 'other', version: null, route: '/', priority: 0 }]);
  });

  promise('a delayed job begins when it is due, and not before', async (bench) => {
    const id = await bench.accept({ delayMs: 5000 });
    await pass(4999);
    assert.deepEqual([bench.waiting(), await bench.begin(), bench.due], [0, [], []]);
    await pass(1);
    assert.deepEqual([bench.due, await bench.begin()], [['m'], [id]]);
  });

  promise(
    'a job expires if it has not begun in its time, which counts from when it is due',
    async (bench) => {
      const late = await bench.accept({ delayMs: 1000, ttlMs: 5000 });
      const running = await bench.accept({ ttlMs: 5000 });
      assert.deepEqual(await bench.begin(), [running]);
      const soon = await bench.accept({ ttlMs: 5000 });
      await pass(5000);
      assert.deepEqual([await bench.state(soon), await bench.state(late)], ['expired', 'queued']);
      await pass(1000);
      const record = await bench.record(late);
      assert.deepEqual([record.state, record.end?.error?.code], ['expired', 'SERVE_JOB_EXPIRED']);
      assert.deepEqual(
        bench.endedUnrun.map(({ id }) => id),
        [soon, late],
      );
      assert.deepEqual(
        [await bench.begin(), bench.waiting(), await bench.state(running)],
        [[], 0, 'running'],
      );
    },
  );

  promise('one that has expired does not begin for another that is due by the same look', async (bench) => {
    const late = await bench.accept({ ttlMs: 1500 });
    const due = await bench.accept({ delayMs: 1000 });
    const { listener } = bench.store;
    const begun: string[] = [];
    bench.store.listener = {
      ...listener,
      onDue: (model) => {
        listener.onDue(model);
        void bench.begin('nested').then((ids) => begun.push(...ids));
      },
    };
    mock.timers.setTime(1_000_000 + 2000);
    begun.push(...(await bench.begin()));
    await pass(1000);
    assert.deepEqual([begun, await bench.state(late)], [[due], 'expired']);
  });

  promise('what has expired by the clock does not begin, even if no timer has looked', async (bench) => {
    const id = await bench.accept({ ttlMs: 5000 });
    mock.timers.setTime(1_000_000 + 5000);
    assert.deepEqual([await bench.begin(), await bench.state(id)], [[], 'expired']);
  });

  for (const [code, status, isTriedAgain] of [
    ['SERVE_WORKER_LOST', 0, true],
    ['SERVE_INFERENCE_FAILED', 0, true],
    ['SERVE_INFERENCE_TIMEOUT', 0, true],
    ['SERVE_INFERENCE_FAILED', 503, false],
    ['SERVE_HTTP_ERROR', 422, false],
    ['SERVE_BAD_BODY', 0, false],
    ['SERVE_NOT_BEGUN', 0, false],
  ] as const) {
    promise(
      `after ${code}, status ${status}, a repeatable job ${isTriedAgain ? 'waits again' : 'ends'}`,
      async (bench) => {
        const id = await bench.accept({ maxAttempts: 3, ttlMs: 10_000 });
        await bench.begin();
        const settled = await bench.fail(id, 'mark', new ServeError(code, undefined, { status }));
        assert.equal(settled?.state, isTriedAgain ? 'queued' : 'failed');
      },
    );
  }

  promise(
    'a repeatable job is tried again after 1 s, then 4 s, and so often in all; its time to begin is no limit',
    async (bench) => {
      const id = await bench.accept({ maxAttempts: 3, ttlMs: 500 });
      for (const [attempt, waitMs] of [1000, 4000].entries()) {
        assert.deepEqual(await bench.begin(`mark ${attempt}`), [id]);
        await bench.fail(id, `mark ${attempt}`);
        await pass(waitMs - 1);
        assert.deepEqual([await bench.state(id), bench.waiting(), await bench.begin()], ['queued', 0, []]);
        await pass(1);
      }
      await bench.begin('last');
      const record = await bench.fail(id, 'last');
      assert.deepEqual(
        [record?.state, record?.attempts, record?.end?.error?.code],
        ['failed', 3, 'SERVE_INFERENCE_FAILED'],
      );
    },
  );

  promise('a job that is not repeatable is lost with its worker', async (bench) => {
    const id = await bench.accept();
    await bench.begin();
    assert.equal((await bench.fail(id, 'mark', new ServeError('SERVE_WORKER_LOST')))?.state, 'lost');
  });

  promise(
    'a cancel ends a queued job, due or not; of a running one the first outcome decides',
    async (bench) => {
      const [queued, delayed] = [await bench.accept(), await bench.accept({ delayMs: 1000 })];
      for (const id of [queued, delayed]) {
        assert.equal((await bench.store.cancel(id))?.state, 'queued');
        const record = await bench.record(id);
        assert.deepEqual([record.state, record.end?.error?.code], ['cancelled', 'SERVE_JOB_CANCELLED']);
      }
      assert.deepEqual([await bench.begin(), bench.endedUnrun.length], [[], 2]);
      const results: unknown[] = [];
      for (const end of ['answers', 'throws', 'goes back'] as const) {
        const id = await bench.accept({ maxAttempts: 3 });
        await bench.begin();
        assert.equal((await bench.store.cancel(id))?.state, 'running');
        assert.equal(bench.cancelled.pop(), id, 'its app is told');
        assert.equal(await bench.state(id), 'running');
        if (end === 'answers') await bench.answer(id);
        else if (end === 'throws') await bench.fail(id);
        else await bench.store.giveBack(id, 'mark', true);
        results.push(await bench.state(id));
        assert.ok(hasEnded((await bench.store.cancel(id)) as JobRecord), 'the record before a second cancel');
      }
      assert.deepEqual(results, ['succeeded', 'cancelled', 'cancelled']);
      assert.equal(await bench.store.cancel('none'), null);
    },
  );

  promise('a key has one job as long as that is kept, and another content conflicts', async (bench) => {
    const key = { scope: 's', content: 'c' };
    const first = newStoredJob({ id: 'a', createdAt: Date.now(), key });
    const second = newStoredJob({ id: 'b', createdAt: Date.now(), key });
    const both = await Promise.all([bench.store.accept(first), bench.store.accept(second)]);
    assert.deepEqual(
      both.map((one) => [one.is, 'record' in one && one.record.id]),
      [
        ['accepted', 'a'],
        ['known', 'a'],
      ],
    );
    const other = newStoredJob({ id: 'c', createdAt: Date.now(), key: { scope: 's', content: 'other' } });
    assert.deepEqual(await bench.store.accept(other), { is: 'conflict' });
    await bench.begin();
    await bench.answer('a');
    const late = await bench.store.accept(second);
    assert.deepEqual(late, { is: 'known', record: await bench.record('a') });
    await pass(LIMITS.retentionMs + 1000);
    assert.equal((await bench.store.accept(second)).is, 'accepted');
  });

  promise(
    'an id that a client has chosen is its key, and conflicts with any other job of this id',
    async (bench) => {
      const others = [
        await bench.accept({ id: 'a' }),
        await bench.accept({ id: 'b', key: { scope: 's', content: 'c' } }),
      ];
      const named = (id: string): ReturnType<typeof newStoredJob> =>
        newStoredJob({ id, createdAt: Date.now(), key: { scope: id, content: 'c' } });
      for (const id of others) assert.deepEqual(await bench.store.accept(named(id)), { is: 'conflict' });
      assert.equal(bench.waiting(), 2);
      await Promise.all(others.map((id) => bench.store.cancel(id)));
      assert.deepEqual(await bench.store.accept(named('a')), { is: 'conflict' });
      await pass(LIMITS.retentionMs + 1000);
      assert.equal((await bench.store.accept(named('a'))).is, 'accepted');
      assert.equal((await bench.store.accept(named('a'))).is, 'known');
    },
  );

  promise('a job is withdrawn unless it has begun', async (bench) => {
    const key = { scope: 's', content: 'c' };
    const [queued, begun] = [await bench.accept({ priority: 1, key }), await bench.accept({ priority: 9 })];
    await bench.begin();
    await bench.store.withdraw(queued);
    await bench.store.withdraw(begun);
    assert.deepEqual(
      [await bench.store.get(queued), await bench.state(begun), bench.waiting()],
      [null, 'running', 0],
    );
    assert.notEqual(await bench.accept({ key }), queued, 'its key is free');
  });

  promise(
    'progress is that of the attempt with the mark, and begins anew with the next one',
    async (bench) => {
      const id = await bench.accept({ maxAttempts: 2 });
      await bench.begin();
      bench.store.progress(id, 'mark', { fraction: 0.5, text: 'half' });
      bench.store.progress(id, 'another', { fraction: 0.9, text: '' });
      assert.deepEqual((await bench.record(id)).progress, { fraction: 0.5, text: 'half' });
      await bench.fail(id);
      assert.equal((await bench.record(id)).progress, null);
      await pass(1000);
      await bench.begin();
      bench.store.progress(id, 'mark', { fraction: 0.1, text: 'again' });
      assert.deepEqual((await bench.answer(id))?.progress, { fraction: 1, text: 'again' });
    },
  );

  promise('the list has the newest first, by pages, of one state or of all', async (bench) => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i += 1) ids.push(await bench.accept());
    await bench.begin();
    const pages: string[][] = [];
    let from: number | null = null;
    do {
      const { records, next } = await bench.store.list({ state: null, limit: 2, from });
      pages.push(records.map(({ id }) => id));
      from = next;
    } while (from !== null);
    const [a, b, c, d, e] = ids as [string, string, string, string, string];
    assert.deepEqual(pages, [[e, d], [c, b], [a]]);
    const queued = await bench.store.list({ state: 'queued', limit: 4, from: null });
    assert.deepEqual([queued.records.map(({ id }) => id), queued.next], [[e, d, c, b], null]);
  });

  promise('ended jobs are dropped after their time', async (bench) => {
    const [first, waiting] = [await bench.accept({ priority: 9 }), await bench.accept()];
    await bench.begin();
    await bench.answer(first);
    await pass(LIMITS.retentionMs - 1);
    assert.notEqual(await bench.store.get(first), null);
    await pass(1000);
    assert.deepEqual([await bench.store.get(first), await bench.state(waiting)], [null, 'queued']);
  });

  promise(
    'when room runs short the jobs that ended first are dropped, then new ones are refused; each counts for 1 KiB at least',
    async (bench) => {
      const ended: string[] = [];
      for (let i = 0; i < 3; i += 1) {
        ended.push(await bench.accept());
        await bench.begin();
      }
      for (const id of [...ended].reverse()) await bench.answer(id);
      const waiting = await bench.accept({ body: 'x'.repeat(2000) });
      const known = await Promise.all(ended.map(async (id) => (await bench.store.get(id)) !== null));
      assert.deepEqual(known, [true, true, false], 'the one that ended first');
      await bench.accept({ body: 'x'.repeat(2000) });
      const job = newStoredJob({ id: 'too many', createdAt: Date.now() });
      assert.deepEqual(await bench.store.accept(job), { is: 'full' });
      assert.equal(await bench.state(waiting), 'queued');
    },
    { maxBytes: 4096 },
  );

  promise(
    'a result without room is dropped, which its record says, and drops no others in vain',
    async (bench) => {
      const small = await bench.accept();
      await bench.begin();
      await bench.answer(small);
      const large = await bench.accept();
      await bench.begin();
      const record = await bench.answer(large, 'mark', 'x'.repeat(9000));
      assert.deepEqual(
        [record?.state, record?.end?.result],
        ['succeeded', { head: HEAD, bytes: 9000, isDropped: true }],
      );
      assert.equal(await bench.store.readResult(large), null);
      assert.notEqual(await bench.store.readResult(small), null);
      const fits = await bench.accept();
      await bench.begin();
      await bench.answer(fits, 'mark', 'x'.repeat(3000));
      assert.deepEqual(
        [(await bench.store.readResult(fits))?.length, await bench.store.get(small)],
        [3000, null],
      );
    },
    { maxBytes: 4096 },
  );

  promise(
    'a result takes the room of however many small jobs have ended',
    async (bench) => {
      const large = await bench.accept();
      await bench.begin('large');
      const small = await Promise.all(Array.from({ length: 2100 }, () => bench.accept()));
      await Promise.all(small.map((id) => bench.store.cancel(id)));
      const record = await bench.answer(large, 'large', 'x'.repeat(2190 * 1024));
      assert.equal(record?.end?.result?.isDropped, false);
    },
    { maxBytes: 2200 * 1024 },
  );
}

/** A store that outlives its process. */
export interface DurableStore extends OpenStore {
  /** As after a kill: a new process opens what the first has stored. */
  reopen(): Promise<DurableStore>;
}

/** Defines the tests of what a store keeps when its process dies. */
export function durableConformance(name: string, open: (limits: KeepLimits) => Promise<DurableStore>): void {
  const survives = (
    title: string,
    before: (bench: StoreBench) => Promise<void>,
    after: (bench: StoreBench) => Promise<void>,
    limits: Partial<KeepLimits> = {},
  ): void => {
    test(`${name}: ${title}`, { timeout: 240_000 }, async () => {
      let opened = await open({ ...LIMITS, ...limits });
      try {
        await before(new StoreBench(opened.store));
        opened = await opened.reopen();
        await after(new StoreBench(opened.store));
      } finally {
        await opened.close();
      }
    });
  };

  survives(
    'a webhook of an app is sent by the next process, until it is forgotten',
    async ({ store }) => {
      await store.owe({ ...WEBHOOK, id: 'msg_sent' });
      await store.owe(WEBHOOK);
      await store.forgetWebhook('msg_sent');
      assert.deepEqual(await store.takeWebhooks(10), [], 'this process sends them');
    },
    async ({ store }) => {
      const [taken, ...others] = await untilTaken(store);
      assert.deepEqual([taken?.of, others], ['app', []]);
      assert.deepEqual(
        taken?.of === 'app' && { ...taken.webhook, body: Buffer.from(taken.webhook.body).toString() },
        WEBHOOK_TEXT,
      );
      assert.deepEqual(await store.takeWebhooks(10), [], 'each is taken once');
    },
  );

  survives(
    'the webhook of a job is owed from the step on in which it ends',
    async (bench) => {
      const [answered, posted] = [
        await bench.accept({ webhook: WEBHOOK.url }),
        await bench.accept({ webhook: WEBHOOK.url }),
      ];
      await bench.begin();
      await bench.begin();
      await bench.answer(answered, 'mark', '"answer"');
      await bench.answer(posted);
      await bench.store.endWebhook(posted);
      assert.equal((await bench.record(posted)).end?.owesWebhook, false);
      assert.deepEqual(await bench.store.takeWebhooks(10), [], 'this process posts them');
    },
    async ({ store }) => {
      const [taken, ...others] = await untilTaken(store);
      assert.ok(taken?.of === 'job' && others.length === 0);
      assert.deepEqual(
        [taken.record.state, taken.record.end.owesWebhook, taken.call.webhook, String(taken.body)],
        ['succeeded', true, WEBHOOK.url, '"answer"'],
      );
    },
  );

  survives(
    'a job that owes its webhook is not dropped for others',
    async (bench) => {
      const id = await bench.accept({ webhook: WEBHOOK.url });
      await bench.begin();
      await bench.answer(id);
      for (let i = 0; i < 20; i += 1) await bench.accept();
      assert.equal(await bench.state(id), 'succeeded');
      await bench.store.endWebhook(id);
      for (let i = 0; i < 20; i += 1)
        await bench.store.accept(newStoredJob({ id: `more ${i}`, createdAt: Date.now() }));
      assert.equal(await bench.store.get(id), null);
    },
    () => Promise.resolve(),
    { maxBytes: 22 * 1024 },
  );
}

const WEBHOOK_TEXT = {
  id: 'msg_owed',
  url: 'https://user:secret@example.com/hook',
  body: '{"a":1}',
  contentType: 'application/json',
  requestId: 'r',
  timeoutMs: 1000,
  retries: 2,
};
const WEBHOOK = { ...WEBHOOK_TEXT, body: Buffer.from(WEBHOOK_TEXT.body) };

/** Another process may have to be known as dead first. */
async function untilTaken(store: JobStore): Promise<readonly KeptWebhook[]> {
  let taken: readonly KeptWebhook[] = [];
  await eventually(
    async () => (taken = await store.takeWebhooks(10)).length > 0,
    60_000,
    () => 'no webhook is taken',
  );
  return taken;
}
