import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { ServeError, type ErrorCode } from '../../../protocol/errors.js';
import type { NewJob } from '../../../supervisor/jobs/job-record.js';
import { ACCEPT_LIMIT_MS } from '../../../supervisor/jobs/kept-jobs.js';
import { MemoryStore } from '../../../supervisor/jobs/memory-store.js';
import { HEAD, JobsBench } from './jobs.js';

beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
afterEach(() => mock.timers.reset());

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a job is queued, running, then succeeded with its result', async () => {
  const bench = new JobsBench(new MemoryStore());
  mock.timers.setTime(1000);
  const { id } = await bench.accept();
  assert.deepEqual([await bench.state(id), bench.feed.waiting], ['queued', 1]);
  mock.timers.setTime(2000);
  const job = await bench.begin();
  const running = await bench.jobs.get(id);
  assert.deepEqual([running?.state, running?.attempts, running?.begunAt], ['running', 1, 2000]);
  mock.timers.setTime(3000);
  job.reply(HEAD, [Buffer.from('{"a"'), Buffer.from(':1}')], 7, 5);
  const ended = await bench.jobs.get(id);
  assert.deepEqual([ended?.state, ended?.end?.endedAt, ended?.end?.runMs], ['succeeded', 3000, 5]);
  assert.deepEqual(ended?.end?.result, { head: HEAD, bytes: 7, isDropped: false });
  assert.equal((await bench.jobs.readResult(id))?.toString(), '{"a":1}');
  assert.deepEqual(structuredClone(ended), ended, 'a record is data');
  assert.equal(await bench.jobs.get('unknown'), null);
});

test('the call, its body and its time in the queue are those that were accepted', async () => {
  const bench = new JobsBench(new MemoryStore());
  await bench.accept({ requestId: 'mine', body: '{"x":1}' });
  mock.timers.tick(500);
  const job = await bench.begin();
  assert.deepEqual([job.call.requestId, job.call.bodyBytes, job.pieces.join('')], ['mine', 7, '{"x":1}']);
  assert.ok(job.queueMs(performance.now()) >= 500);
  assert.equal(job.deadlineAtMs, null);
});

for (const [code, state] of [
  ['SERVE_INFERENCE_FAILED', 'failed'],
  ['SERVE_INFERENCE_TIMEOUT', 'failed'],
  ['SERVE_NOT_BEGUN', 'failed'],
  ['SERVE_WORKER_LOST', 'lost'],
] as const satisfies readonly (readonly [ErrorCode, string])[]) {
  test(`a job that ends with ${code} is ${state}`, async () => {
    const bench = new JobsBench(new MemoryStore());
    const { id } = await bench.accept();
    (await bench.begin()).fail(new ServeError(code));
    const record = await bench.jobs.get(id);
    assert.deepEqual([record?.state, record?.end?.error?.code, record?.end?.result], [state, code, null]);
  });
}

test('a result is a copy that holds no more memory than its bytes', async () => {
  const bench = new JobsBench(new MemoryStore());
  const { id } = await bench.accept();
  const piece = Buffer.from('before');
  (await bench.begin()).reply(HEAD, [piece], 6, 1);
  piece.fill(0);
  const result = await bench.jobs.readResult(id);
  assert.deepEqual([result?.toString(), result?.buffer.byteLength], ['before', 6]);
});

test('the memory of a body is returned once an answer proves that the worker has read it', async () => {
  const bench = new JobsBench(new MemoryStore());
  await bench.accept({ body: 'answered' });
  await bench.accept({ body: 'failed' });
  (await bench.begin()).reply(HEAD, [], 0, 1);
  (await bench.begin()).fail(new ServeError('SERVE_WORKER_LOST'));
  assert.deepEqual(bench.released, ['answered']);
});

test('a stream is kept completely, with its head, and never makes its worker wait', async () => {
  const bench = new JobsBench(new MemoryStore());
  const { id } = await bench.accept();
  const job = await bench.begin();
  let taken = 0;
  job.head({ ...HEAD, status: 201 });
  job.chunk([Buffer.from('a')], () => (taken += 1));
  job.chunk([Buffer.from('b'), Buffer.from('c')], () => (taken += 1));
  assert.deepEqual([await bench.state(id), taken], ['running', 2]);
  job.end(3);
  const record = await bench.jobs.get(id);
  assert.deepEqual([record?.state, record?.end?.result?.head.status], ['succeeded', 201]);
  assert.equal((await bench.jobs.readResult(id))?.toString(), 'abc');
});

test('a stream that breaks off fails the job, and nothing of it is kept', async () => {
  const bench = new JobsBench(new MemoryStore());
  const { id } = await bench.accept();
  const job = await bench.begin();
  job.head(HEAD);
  job.chunk([Buffer.from('a')], () => {});
  job.fail(new ServeError('SERVE_INFERENCE_FAILED'));
  assert.deepEqual([await bench.state(id), await bench.jobs.readResult(id)], ['failed', null]);
});

test('a result above the limit is dropped, whole or streamed, and its record says so', async () => {
  const bench = new JobsBench(new MemoryStore({ keepMs: 1000, maxJobs: 10, maxBytes: 400 }));
  const kept = async (id: string): Promise<unknown> => (await bench.jobs.readResult(id))?.length ?? null;
  assert.equal(await kept((await bench.end(100)).id), 100);
  const whole = await bench.end(101);
  const streamed = await bench.accept();
  const job = await bench.begin();
  let taken = 0;
  for (let i = 0; i < 3; i += 1) job.chunk([Buffer.alloc(50)], () => (taken += 1));
  job.end(1);
  for (const { id } of [whole, streamed]) {
    const record = await bench.jobs.get(id);
    assert.deepEqual(
      [record?.state, record?.end?.result?.isDropped, await kept(id)],
      ['succeeded', true, null],
    );
  }
  assert.equal(taken, 3);
});

test('headers of an answer and the detail of an error are not kept; status and issues are', async () => {
  const bench = new JobsBench(new MemoryStore());
  const answered = await bench.accept();
  const headers = `X-Long\n${'x'.repeat(1000)}`;
  (await bench.begin()).reply({ ...HEAD, headers }, [Buffer.from('1')], 1, 1);
  assert.deepEqual((await bench.jobs.get(answered.id))?.end?.result?.head, HEAD);
  const failed = await bench.accept();
  const issues = [{ path: ['age'], message: 'not a number' }];
  const facts = { status: 422, issues, detail: 'secret' };
  (await bench.begin()).fail(new ServeError('SERVE_HTTP_ERROR', 'wrong', facts));
  const error = (await bench.jobs.get(failed.id))?.end?.error;
  assert.deepEqual(error, { code: 'SERVE_HTTP_ERROR', message: 'wrong', status: 422, kind: '', issues });
});

test('jobs of one route that may begin together do, in order; those of another route follow', async () => {
  const bench = new JobsBench(
    new MemoryStore(),
    new Map([
      ['/', 8],
      ['/other', 8],
    ]),
  );
  for (const [requestId, route] of [
    ['a', '/'],
    ['b', '/other'],
    ['c', '/'],
    ['d', '/'],
  ] as const)
    await bench.accept({ requestId, route });
  const ids = async (batch: number): Promise<string[]> =>
    (await bench.pull(batch)).map(({ call }) => call.requestId);
  assert.deepEqual([await ids(2), await ids(2), await ids(2), await ids(2)], [['a', 'c'], ['b'], ['d'], []]);
});

test('a job of another model, version or route waits for it', async () => {
  const bench = new JobsBench(new MemoryStore(), new Map([['/else', 1]]));
  await bench.accept();
  assert.deepEqual([bench.feed.waiting, bench.feed.mayHaveDue, await bench.pull()], [0, false, []]);
});

test('a job that is given back waits again at its old place, as if it had not begun', async () => {
  const bench = new JobsBench(new MemoryStore());
  const first = await bench.accept({ requestId: 'first' });
  await bench.accept({ requestId: 'second' });
  (await bench.begin()).giveBack(false);
  const record = await bench.jobs.get(first.id);
  assert.deepEqual([record?.state, record?.attempts, record?.begunAt], ['queued', 0, null]);
  assert.equal(bench.pumps, 3, 'its model looks for it');
  assert.equal((await bench.begin()).call.requestId, 'first');
});

test('a job fails when a second worker dies with it before it begins', async () => {
  const bench = new JobsBench(new MemoryStore());
  const { id } = await bench.accept();
  (await bench.begin()).giveBack(true);
  (await bench.begin()).giveBack(false);
  assert.equal(await bench.state(id), 'queued');
  (await bench.begin()).giveBack(true);
  const record = await bench.jobs.get(id);
  assert.deepEqual([record?.state, record?.end?.error?.code], ['failed', 'SERVE_NOT_BEGUN']);
});

test('the outcome of an attempt that has lost its mark changes nothing', async () => {
  const bench = new JobsBench(new MemoryStore());
  const { id } = await bench.accept();
  const stale = await bench.begin();
  stale.onGivenBack?.(false); // its sink is still there: the caller was wrong about its worker
  const job = await bench.begin();
  stale.reply(HEAD, [Buffer.from('"stale"')], 7, 1);
  assert.deepEqual([await bench.state(id), bench.ended.length], ['running', 0]);
  job.reply(HEAD, [Buffer.from('"right"')], 7, 1);
  await settled();
  assert.equal((await bench.jobs.readResult(id))?.toString(), '"right"');
  assert.deepEqual([await bench.state(id), bench.ended.length], ['succeeded', 1]);
});

test('a job that does not begin in time fails, and its end is reported', async () => {
  const bench = new JobsBench(new MemoryStore());
  const waiting = await bench.accept({ waitLimitMs: 1000 });
  const running = await bench.accept({ waitLimitMs: 1000 });
  await bench.begin();
  const late = await bench.accept({ waitLimitMs: 5000 });
  mock.timers.tick(1000);
  assert.deepEqual(
    [await bench.state(waiting.id), await bench.state(running.id), await bench.state(late.id)],
    ['running', 'failed', 'queued'],
  );
  assert.deepEqual(
    bench.ended.map(({ record, job }) => [record.id, record.end.error?.code, job.hasBegun]),
    [[running.id, 'SERVE_QUEUE_TIMEOUT', false]],
  );
  mock.timers.tick(4000);
  assert.equal(await bench.state(late.id), 'failed');
});

test('what waits in memory fails when its model says so', async () => {
  const bench = new JobsBench(new MemoryStore());
  const running = await bench.accept();
  const waiting = await bench.accept();
  await bench.begin();
  assert.deepEqual(bench.jobs.unfinished(), [running.id, waiting.id]);
  bench.feed.failWaiting(new ServeError('SERVE_SHUTTING_DOWN'));
  assert.deepEqual([await bench.state(running.id), await bench.state(waiting.id)], ['running', 'failed']);
  assert.deepEqual(bench.jobs.unfinished(), [running.id]);
});

test('a client that waits is told at the end, after its time, or when it leaves', async () => {
  const bench = new JobsBench(new MemoryStore());
  const { id } = await bench.accept();
  let leave = (): void => {};
  const ended = bench.jobs.whenEnded(id, 60_000, () => {});
  const early = bench.jobs.whenEnded(id, 1000, () => {});
  const left = bench.jobs.whenEnded(id, 60_000, (stop) => (leave = stop));
  await settled();
  mock.timers.tick(1000);
  leave();
  assert.deepEqual([(await early)?.state, (await left)?.state, bench.jobs.waiters], ['queued', 'queued', 1]);
  (await bench.begin()).reply(HEAD, [], 0, 1);
  assert.deepEqual([(await ended)?.state, bench.jobs.waiters], ['succeeded', 0]);
  assert.equal((await bench.jobs.whenEnded(id, 60_000, () => {}))?.state, 'succeeded', 'at once');
  assert.equal(await bench.jobs.whenEnded('unknown', 60_000, () => {}), null);
  assert.equal(bench.jobs.waiters, 0);
});

/** A store that stores or refuses a job when the test decides. */
class Slow extends MemoryStore {
  put = (): void => {};
  refuse: (error: Error) => void = () => {};

  override async accept(job: NewJob): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.put = resolve;
      this.refuse = reject;
    });
    return super.accept(job);
  }
}

test('a job is not known, and not run, before it is stored', async () => {
  const store = new Slow();
  const bench = new JobsBench(store);
  const accepting = bench.accept();
  assert.deepEqual([store.size, bench.feed.waiting], [0, 0]);
  store.put();
  await accepting;
  assert.deepEqual([store.size, bench.feed.waiting], [1, 1]);
  mock.timers.tick(ACCEPT_LIMIT_MS);
  assert.equal(bench.feed.waiting, 1, 'the limit ends with the wait');
});

test('accept rejects and leaves the body to its caller if the store does', async () => {
  const store = new Slow();
  const bench = new JobsBench(store);
  const accepting = bench.accept();
  store.refuse(new Error('no space left'));
  await assert.rejects(accepting, { code: 'SERVE_NOT_KEPT', retryAfterS: 5 });
  assert.match(bench.notKept[0]?.detail ?? '', /^Error: no space left/);
  assert.deepEqual([store.size, bench.released], [0, []]);
});

test('a store that takes too long fails the call, and forgets a job that it stores later', async () => {
  const store = new Slow();
  const bench = new JobsBench(store);
  const accepting = bench.accept();
  mock.timers.tick(ACCEPT_LIMIT_MS);
  await assert.rejects(accepting, { code: 'SERVE_NOT_KEPT' });
  store.put();
  await settled();
  assert.deepEqual([store.size, bench.feed.waiting], [0, 0]);
});
