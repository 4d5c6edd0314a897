/** The way of jobs between their store and the workers, over the store in memory. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import type { Acceptance, NewJob } from '../../../supervisor/jobs/job-record.js';
import { ASK_LIMIT_MS } from '../../../supervisor/jobs/store-guard.js';
import { deferred } from '../../../supervisor/machine/deferred.js';
import { MemoryStore } from '../../../supervisor/jobs/memory-store.js';
import { FakeWorker } from '../dispatch/calls.js';
import { HEAD, JobsBench } from './jobs.js';

beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
afterEach(() => mock.timers.reset());

const LIMITS = { retentionMs: 60_000, maxBytes: 1e6 };

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function open(routes?: ReadonlyMap<string, number>): JobsBench {
  return new JobsBench(new MemoryStore(LIMITS), routes);
}

test('a call is stored with its facts, and begins with them', async () => {
  const bench = open();
  const { id } = await bench.accept({ requestId: 'mine', body: '{"x":1}' });
  mock.timers.tick(500);
  const job = await bench.begin();
  const { message } = job;
  assert.deepEqual([message.requestId, message.bodyBytes, message.job], ['mine', 7, { id, attempt: 1 }]);
  assert.deepEqual([job.pieces.join(''), job.deadlineAtMs], ['{"x":1}', null]);
  assert.ok(job.queueMs(performance.now()) >= 500);
});

test('the log warns once that a restart loses the jobs of a store in memory', async () => {
  const bench = open();
  assert.equal(bench.warnings, 0);
  for (let i = 0; i < 2; i += 1) await bench.accept();
  assert.equal(bench.warnings, 1);
});

test('an answer ends the job, and is a copy that holds no more memory than its bytes', async () => {
  const bench = open();
  const { id } = await bench.accept({ body: 'input' });
  const piece = Buffer.from('before');
  const job = await bench.begin();
  job.reply(HEAD, [piece], 6, 1);
  piece.fill(0);
  await settled();
  const result = await bench.result(id);
  assert.deepEqual([result?.toString(), result?.buffer.byteLength], ['before', 6]);
  const [ended] = bench.ended;
  assert.deepEqual([ended?.record.state, ended?.job, ended?.body?.toString()], ['succeeded', job, 'before']);
});

test('the memory of a body is returned once an answer proves that the worker has read it', async () => {
  const bench = open();
  await bench.accept({ body: 'answered' });
  await bench.accept({ body: 'failed' });
  (await bench.begin()).reply(HEAD, [], 0, 1);
  (await bench.begin()).fail(new ServeError('SERVE_WORKER_LOST'));
  assert.deepEqual(bench.released, ['answered']);
});

test('a stream is collected with its head, never makes its worker wait, and fails as a whole if it breaks off', async () => {
  const bench = open();
  const whole = await bench.accept();
  const job = await bench.begin();
  let taken = 0;
  job.head({ ...HEAD, status: 201 });
  job.chunk([Buffer.from('a')], () => (taken += 1));
  job.chunk([Buffer.from('b'), Buffer.from('c')], () => (taken += 1));
  assert.deepEqual([await bench.state(whole.id), taken], ['running', 2]);
  job.end(3);
  const record = await bench.jobs.get(whole.id);
  assert.deepEqual([record?.state, record?.end?.result?.head.status], ['succeeded', 201]);
  assert.equal((await bench.result(whole.id))?.toString(), 'abc');
  const cut = await bench.accept();
  const other = await bench.begin();
  other.chunk([Buffer.from('a')], () => {});
  other.fail(new ServeError('SERVE_INFERENCE_FAILED'));
  assert.deepEqual([await bench.state(cut.id), await bench.result(cut.id)], ['failed', null]);
});

test('an answer above the largest is dropped, streamed ones too', async () => {
  const bench = open();
  const whole = await bench.accept();
  (await bench.begin()).reply(HEAD, [Buffer.alloc(1001)], 1001, 1);
  const streamed = await bench.accept();
  const job = await bench.begin();
  job.head(HEAD);
  for (let i = 0; i < 3; i += 1) job.chunk([Buffer.alloc(500)], () => {});
  job.end(1);
  for (const [{ id }, bytes] of [
    [whole, 1001],
    [streamed, 1500],
  ] as const)
    assert.deepEqual((await bench.jobs.get(id))?.end?.result, { head: HEAD, bytes, isDropped: true });
});

test('headers of an answer and the detail of an error are not kept; status and issues are', async () => {
  const bench = open();
  const answered = await bench.accept();
  (await bench.begin()).reply({ ...HEAD, headers: 'X-Long\nx' }, [Buffer.from('1')], 1, 1);
  assert.deepEqual((await bench.jobs.get(answered.id))?.end?.result?.head, HEAD);
  const failed = await bench.accept();
  const issues = [{ path: ['age'], message: 'not a number' }];
  (await bench.begin()).fail(
    new ServeError('SERVE_HTTP_ERROR', 'wrong', { status: 422, issues, detail: 'secret' }),
  );
  const error = (await bench.jobs.get(failed.id))?.end?.error;
  assert.deepEqual(error, { code: 'SERVE_HTTP_ERROR', message: 'wrong', status: 422, kind: '', issues });
});

test('a model of no such route pulls nothing, and the log says once that jobs wait for it', async () => {
  const bench = open(new Map([['/else', 1]]));
  await bench.accept();
  await bench.accept();
  assert.deepEqual([bench.feed.waiting, await bench.pull()], [0, []]);
  for (let i = 0; i < 3; i += 1) mock.timers.tick(10_000);
  assert.deepEqual(bench.stranded, [
    'jobs wait for the route / of model, which this server does not serve now',
  ]);
});

test('a job that names no version waits for the default one, which its model learns soon', async () => {
  const bench = open();
  bench.isDefault = false;
  await bench.accept();
  const { pumps } = bench;
  assert.equal(bench.feed.waiting, 0);
  bench.isDefault = true;
  mock.timers.tick(10_000);
  assert.deepEqual([bench.feed.waiting, bench.pumps], [1, pumps + 1]);
});

test('a job fails when a second worker dies with it before it begins', async () => {
  const bench = open();
  const { id } = await bench.accept();
  (await bench.begin()).giveBack(true);
  (await bench.begin()).giveBack(false);
  assert.equal(await bench.state(id), 'queued');
  (await bench.begin()).giveBack(true);
  const record = await bench.jobs.get(id);
  assert.deepEqual([record?.state, record?.end?.error?.code], ['failed', 'SERVE_NOT_BEGUN']);
  assert.deepEqual([record?.attempts, record?.begunAt, bench.ended.length], [0, null, 1]);
});

test('the begin of a job with a webhook is told once, although it is given back and begins again', async () => {
  const bench = open();
  const { id } = await bench.accept({ wishes: { webhook: 'http://localhost/hook' } });
  for (let i = 0; i < 2; i += 1) (await bench.begin()).giveBack(false);
  await bench.begin();
  assert.deepEqual(bench.begun, [id]);
});

test('an attempt that fails is reported, and its worker must let go of it before the next one begins', async () => {
  const bench = open();
  const { id } = await bench.accept({ wishes: { maxAttempts: 2 } });
  const job = await bench.begin();
  job.sendTo(new FakeWorker());
  job.fail(new ServeError('SERVE_INFERENCE_TIMEOUT'));
  mock.timers.tick(5000);
  assert.deepEqual([await bench.state(id), bench.feed.waiting], ['running', 0]);
  job.leaveHolder();
  await settled();
  assert.deepEqual(
    bench.retried.map(({ attempts }) => attempts),
    [1],
  );
  mock.timers.tick(1000);
  const again = await bench.begin();
  assert.deepEqual(again.message.job, { id, attempt: 2 });
  again.reply(HEAD, [], 0, 1);
  await settled();
  assert.deepEqual([await bench.state(id), bench.ended.length], ['succeeded', 1]);
});

test('a cancel signals the app of a running job', async () => {
  const bench = open();
  const { id } = await bench.accept();
  const job = await bench.begin();
  const signals: string[] = [];
  job.sendTo(Object.assign(new FakeWorker(), { signal: (_job: Call, why: string) => signals.push(why) }));
  assert.equal((await bench.jobs.cancel(id))?.state, 'running');
  assert.deepEqual(signals, ['the job was cancelled']);
});

test('progress is stored once a second, the newest; the record of the end has the text of the last', async () => {
  const bench = open();
  const { id } = await bench.accept();
  const seen: unknown[] = [];
  bench.jobs.watchers.add(id, (record) => seen.push(record?.progress ?? record?.state));
  const job = await bench.begin();
  for (const fraction of [0.1, 0.2, 0.3]) job.progress(fraction, '');
  mock.timers.tick(999);
  const at = (fraction: number, text = ''): object => ({ fraction, text });
  assert.deepEqual(seen, ['running', at(0.1)]);
  mock.timers.tick(1);
  job.progress(0.4, 'last');
  job.reply(HEAD, [], 0, 1);
  mock.timers.tick(5000);
  assert.deepEqual(seen, ['running', at(0.1), at(0.3), at(1, 'last')]);
});

test('the record of a job that failed has its last report, even one from behind its run limit', async () => {
  const bench = open();
  const { id } = await bench.accept();
  const job = await bench.begin();
  job.sendTo(new FakeWorker());
  job.progress(0.1, 'early');
  job.fail(new ServeError('SERVE_INFERENCE_TIMEOUT'));
  job.progress(0.2, 'late');
  job.leaveHolder();
  await settled();
  const record = await bench.jobs.get(id);
  assert.deepEqual([record?.state, record?.progress], ['failed', { fraction: 0.2, text: 'late' }]);
});

test('the end of a job ends all waits for it: the store is asked once for each, when it comes', async () => {
  const store = new MemoryStore(LIMITS);
  const bench = new JobsBench(store);
  const { id } = await bench.accept();
  let asked = 0;
  const get = store.get.bind(store);
  store.get = (...args) => {
    asked += 1;
    return get(...args);
  };
  const waiters = Array.from({ length: 10 }, () => bench.jobs.whenEnded(id, 60_000, () => {}));
  (await bench.begin()).reply(HEAD, [], 0, 1);
  const ends = await Promise.all(waiters);
  assert.deepEqual([new Set(ends.map((end) => end?.state)), asked], [new Set(['succeeded']), 10]);
});

test("a client's wait ends with the job, after its time, or when it leaves", async () => {
  const bench = open();
  const { id } = await bench.accept();
  let leave = (): void => {};
  const ended = bench.jobs.whenEnded(id, 60_000, () => {});
  const early = bench.jobs.whenEnded(id, 1000, () => {});
  const left = bench.jobs.whenEnded(id, 60_000, (stop) => (leave = stop));
  await settled();
  mock.timers.tick(1000);
  leave();
  assert.deepEqual(
    [(await early)?.state, (await left)?.state, bench.jobs.watchers.count],
    ['queued', 'queued', 1],
  );
  (await bench.begin()).reply(HEAD, [], 0, 1);
  assert.deepEqual([(await ended)?.state, bench.jobs.watchers.count], ['succeeded', 0]);
  assert.equal((await bench.jobs.whenEnded(id, 60_000, () => {}))?.state, 'succeeded', 'at once');
  assert.equal(await bench.jobs.whenEnded('unknown', 60_000, () => {}), null);
  assert.equal(bench.jobs.watchers.count, 0);
});

test('when the server ends, what waits in memory fails, and waits for a job are answered', async () => {
  const bench = open();
  const [running, waiting] = [await bench.accept(), await bench.accept()];
  await bench.begin();
  assert.deepEqual(bench.jobs.unfinished(), [running.id, waiting.id]);
  const told = [running, waiting].map(({ id }) => bench.jobs.whenEnded(id, 60_000, () => {}));
  await settled();
  bench.jobs.drain();
  assert.equal(bench.feed.waiting, 1, 'a drain runs what is in memory');
  await bench.jobs.stop();
  assert.deepEqual(
    (await Promise.all(told)).map((record) => record?.state),
    ['running', 'failed'],
  );
  assert.deepEqual(
    bench.ended.map(({ record, job }) => [record.id, record.end.error?.code, job.hasBegun]),
    [[waiting.id, 'SERVE_SHUTTING_DOWN', false]],
  );
});

/** A store that stores or refuses a job when the test decides. */
class Slow extends MemoryStore {
  put = (): void => {};
  refuse: (error: Error) => void = () => {};

  override async accept(job: NewJob): Promise<Acceptance> {
    await new Promise<void>((resolve, reject) => {
      this.put = resolve;
      this.refuse = reject;
    });
    return super.accept(job);
  }
}

test('a job is not known, and not run, before it is stored', async () => {
  const store = new Slow(LIMITS);
  const bench = new JobsBench(store);
  const accepting = bench.accept();
  assert.equal(bench.feed.waiting, 0);
  store.put();
  await accepting;
  assert.equal(bench.feed.waiting, 1);
  mock.timers.tick(ASK_LIMIT_MS);
  assert.equal(bench.feed.waiting, 1, 'the limit ends with the wait');
});

test('accept rejects and leaves the body to its caller if the store fails or has no room', async () => {
  const store = new Slow(LIMITS);
  const bench = new JobsBench(store);
  const failing = bench.accept();
  store.refuse(new Error('no space left'));
  await assert.rejects(failing, { code: 'SERVE_NOT_KEPT', retryAfterS: 5 });
  const full = new JobsBench(new MemoryStore({ ...LIMITS, maxBytes: 100 }));
  await assert.rejects(full.accept(), { code: 'SERVE_NOT_KEPT', retryAfterS: 5 });
  assert.match(bench.notKept[0]?.detail ?? '', /^Error: no space left/);
  assert.match(full.notKept[0]?.detail ?? '', /^Error: --job-bytes has no room for it/);
  assert.deepEqual([...bench.released, ...full.released], []);
});

test('a store that takes too long fails the call, and forgets a job that it stores later', async () => {
  const store = new Slow(LIMITS);
  const bench = new JobsBench(store);
  const accepting = bench.accept();
  mock.timers.tick(ASK_LIMIT_MS);
  await assert.rejects(accepting, { code: 'SERVE_NOT_KEPT' });
  store.put();
  await settled();
  assert.equal(bench.feed.waiting, 0);
});

test('a job with a key stays when it is stored too late: another call of the key was accepted as this job', async () => {
  const store = new Slow(LIMITS);
  const bench = new JobsBench(store);
  const wishes = { key: { scope: 's', content: 'c' } };
  const late = bench.accept({ wishes });
  mock.timers.tick(ASK_LIMIT_MS);
  await assert.rejects(late, { code: 'SERVE_NOT_KEPT' });
  const { put } = store;
  const again = bench.accept({ wishes });
  put();
  store.put();
  const { id } = await again;
  assert.deepEqual([await bench.state(id), bench.feed.waiting], ['queued', 1]);
});

test('a client is not left waiting by a store that fails', async () => {
  const store = new MemoryStore(LIMITS);
  const bench = new JobsBench(store);
  const { id } = await bench.accept();
  store.get = () => Promise.reject(new Error('away'));
  await assert.rejects(
    bench.jobs.whenEnded(id, 1000, () => {}),
    { code: 'SERVE_JOBS_UNAVAILABLE', detail: /away/ },
  );
  assert.equal(bench.jobs.watchers.count, 0);
});

test('another call of the same key gets the first job, one of another content is refused', async () => {
  const bench = open();
  const key = { scope: 's', content: 'c' };
  const { id } = await bench.accept({ wishes: { key } });
  assert.equal((await bench.accept({ wishes: { key } })).id, id);
  await assert.rejects(bench.accept({ wishes: { key: { scope: 's', content: 'd' } } }), {
    code: 'SERVE_KEY_CONFLICT',
  });
  assert.equal(bench.feed.waiting, 1);
});

/** A store whose methods fail while it is away. */
class Away extends MemoryStore {
  isAway = false;
  calls = 0;

  override begin(...args: Parameters<MemoryStore['begin']>): ReturnType<MemoryStore['begin']> {
    return this.#unlessAway(() => super.begin(...args));
  }

  override settle(...args: Parameters<MemoryStore['settle']>): ReturnType<MemoryStore['settle']> {
    return this.#unlessAway(() => super.settle(...args));
  }

  override giveBack(...args: Parameters<MemoryStore['giveBack']>): ReturnType<MemoryStore['giveBack']> {
    return this.#unlessAway(() => super.giveBack(...args));
  }

  override get(id: string): ReturnType<MemoryStore['get']> {
    return this.#unlessAway(() => super.get(id));
  }

  #unlessAway<T>(call: () => Promise<T>): Promise<T> {
    this.calls += 1;
    return this.isAway ? Promise.reject(new Error('the disk is full')) : call();
  }
}

test('the outcome of a job that ran, and one that waits again, are stored once the store works again', async () => {
  const store = new Away(LIMITS);
  const bench = new JobsBench(store);
  const [ran, back] = [await bench.accept(), await bench.accept()];
  const [first, second] = [await bench.begin(), await bench.begin()];
  store.isAway = true;
  first.reply(HEAD, [Buffer.from('1')], 1, 1);
  second.giveBack(false);
  await settled();
  await assert.rejects(bench.jobs.get(ran.id), { code: 'SERVE_JOBS_UNAVAILABLE', retryAfterS: 5 });
  assert.deepEqual(
    [bench.jobs.guard.problem, bench.health],
    ['the disk is full', ['away: the disk is full']],
  );
  mock.timers.tick(1000);
  await settled();
  assert.equal(bench.ended.length, 0);
  store.isAway = false;
  mock.timers.tick(1000);
  await settled();
  assert.deepEqual([await bench.state(ran.id), await bench.state(back.id)], ['succeeded', 'queued']);
  assert.deepEqual(
    [bench.jobs.guard.problem, bench.health, bench.ended.length],
    [null, ['away: the disk is full', 'well'], 1],
  );
  const { calls } = store;
  mock.timers.tick(5000);
  assert.equal(store.calls, calls, 'nothing is tried again');
});

/** A store that reads and does not write, as one on a full disk, and can say so. */
class Full extends Away {
  /** Whether a look at the disk finds some. */
  hasRoom = true;

  override get(id: string): ReturnType<MemoryStore['get']> {
    return MemoryStore.prototype.get.call(this, id);
  }

  override accept(job: NewJob): Promise<Acceptance> {
    return this.isAway ? Promise.reject(new Error('no room for this one')) : super.accept(job);
  }

  probe(): Promise<void> {
    return this.hasRoom ? Promise.resolve() : Promise.reject(new Error('the disk is full'));
  }
}

test('a store that reads but does not write is reported once, and once when it writes again', async () => {
  const store = new Full(LIMITS);
  const bench = new JobsBench(store);
  const { id } = await bench.accept();
  const job = await bench.begin();
  [store.isAway, store.hasRoom] = [true, false];
  for (let second = 0; second < 3; second += 1) {
    await assert.rejects(bench.accept(), { code: 'SERVE_NOT_KEPT' });
    if (second === 0) job.reply(HEAD, [Buffer.from('1')], 1, 1);
    assert.equal(await bench.state(id), 'running');
    mock.timers.tick(1000);
    await settled();
  }
  assert.deepEqual(bench.health, ['away: the disk is full']);
  store.hasRoom = true;
  mock.timers.tick(1000);
  await settled();
  assert.deepEqual(bench.health, ['away: the disk is full'], 'an outcome still waits');
  store.isAway = false;
  for (let second = 0; second < 2; second += 1) {
    mock.timers.tick(1000);
    await settled();
  }
  assert.deepEqual([bench.health, await bench.state(id)], [['away: the disk is full', 'well'], 'succeeded']);
});

test('a store that has no room for one job, or cannot read one, but works, does not fail', async () => {
  const store = new Full(LIMITS);
  const bench = new JobsBench(store);
  store.isAway = true;
  await assert.rejects(bench.accept(), { code: 'SERVE_NOT_KEPT' });
  await settled();
  store.isAway = false;
  store.get = () => Promise.reject(new Error('its row is damaged'));
  await assert.rejects(bench.jobs.get('any'), { code: 'SERVE_JOBS_UNAVAILABLE', detail: /damaged/ });
  await settled();
  await bench.accept();
  assert.deepEqual([bench.health, bench.notKept.length], [[], 1]);
});

test('a begin that fails begins nothing, and the model is asked to try again each second', async () => {
  const store = new Away(LIMITS);
  const bench = new JobsBench(store);
  const { id } = await bench.accept();
  store.isAway = true;
  assert.deepEqual([await bench.pull(), bench.feed.waiting], [[], 0]);
  const { pumps } = bench;
  mock.timers.tick(1000);
  assert.deepEqual([bench.pumps, bench.feed.waiting], [pumps + 1, 1]);
  store.isAway = false;
  assert.deepEqual((await bench.begin()).message.job, { id, attempt: 1 });
});

test('a store that takes too long to answer a client is unavailable', async () => {
  const store = new MemoryStore(LIMITS);
  const bench = new JobsBench(store);
  store.list = () => new Promise(() => {});
  const listed = bench.jobs.list({ state: null, limit: 1, from: null });
  mock.timers.tick(ASK_LIMIT_MS);
  await assert.rejects(listed, { code: 'SERVE_JOBS_UNAVAILABLE', detail: /took longer than 10 s/ });
});

test('a job that is cancelled before its worker gets it does not begin, and the worker gets the next one', async () => {
  const store = new MemoryStore(LIMITS);
  const bench = new JobsBench(store);
  const { id } = await bench.accept();
  const next = await bench.accept();
  const begin = store.begin.bind(store);
  store.begin = async (...args) => {
    const begun = await begin(...args);
    await bench.jobs.cancel(id); // its mark is set, and this process does not know it yet
    return begun;
  };
  const job = await bench.begin();
  assert.deepEqual([await bench.state(id), job.message.job?.id], ['cancelled', next.id]);
  assert.equal(bench.ended.length, 1);
});

test('a store is closed once it knows of the jobs of killed workers, which do not count as losses', async () => {
  const steps: string[] = [];
  class Noting extends MemoryStore {
    override giveBack(...args: Parameters<MemoryStore['giveBack']>): Promise<void> {
      steps.push(`given back${args[2] ? ' as lost' : ''}`);
      return super.giveBack(...args);
    }

    override close(): Promise<void> {
      steps.push('closed');
      return super.close();
    }
  }
  const bench = new JobsBench(new Noting(LIMITS));
  await bench.accept();
  const job = await bench.begin();
  await bench.jobs.stop();
  const closed = bench.jobs.close();
  await settled();
  assert.deepEqual(steps, []);
  job.giveBack(true);
  await closed;
  assert.deepEqual(steps, ['given back', 'closed']);
});

test('a job that is given back after the clock was set back is due at once', async () => {
  const bench = open();
  mock.timers.setTime(3_600_000);
  const { id } = await bench.accept();
  const job = await bench.begin();
  mock.timers.reset();
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1000 });
  job.giveBack(false);
  await settled();
  assert.equal((await bench.begin()).message.job?.id, id);
});

test('a store that is closed is not reported as one that fails', async () => {
  const store = new Away(LIMITS);
  const bench = new JobsBench(store);
  await bench.accept();
  const job = await bench.begin();
  await bench.jobs.stop();
  const closed = bench.jobs.close();
  await settled();
  mock.timers.tick(2000); // its worker never ends
  await closed;
  store.isAway = true;
  job.reply(HEAD, [], 0, 1);
  await settled();
  assert.deepEqual([store.calls > 0, bench.health], [true, []]);
});

test('a begin that fails is tried again after a second, though its job is due at once', async () => {
  const store = new Away(LIMITS);
  const bench = new JobsBench(store);
  await bench.accept();
  store.isAway = true;
  assert.deepEqual(await bench.pull(), []);
  store.isAway = false;
  store.listener.onDue('model'); // as of a job that is taken back
  assert.deepEqual([await bench.jobs.get('unknown'), bench.feed.waiting], [null, 0]);
  const { pumps } = bench;
  mock.timers.tick(1000);
  assert.deepEqual([bench.feed.waiting, bench.pumps], [1, pumps + 1]);
});

test('a job whose begin is stored while the server ends is given back before the store is closed', async () => {
  const answered = deferred<undefined>();
  const steps: string[] = [];
  class Slow extends MemoryStore {
    override async begin(...args: Parameters<MemoryStore['begin']>): ReturnType<MemoryStore['begin']> {
      await answered.promise;
      return super.begin(...args);
    }

    override async giveBack(
      ...args: Parameters<MemoryStore['giveBack']>
    ): ReturnType<MemoryStore['giveBack']> {
      await settled(); // as over a connection that writes at the end of a turn
      await super.giveBack(...args);
      steps.push('given back');
    }

    override close(): Promise<void> {
      steps.push('closed');
      return super.close();
    }

    override stop(): Promise<void> {
      return Promise.resolve(); // as of a store that outlives the server
    }
  }
  const bench = new JobsBench(new Slow(LIMITS));
  await bench.accept();
  const pulled = bench.pull();
  await bench.jobs.stop();
  const closed = bench.jobs.close();
  answered.resolve(undefined);
  assert.deepEqual(await pulled, [], 'no worker gets it');
  await closed;
  assert.deepEqual(steps, ['given back', 'closed']);
});
