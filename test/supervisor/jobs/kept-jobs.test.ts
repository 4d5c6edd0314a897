import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { ServeError, type ErrorCode } from '../../../protocol/errors.js';
import { ACCEPT_LIMIT_MS, KeptJobs, type KeptJob } from '../../../supervisor/jobs/kept-jobs.js';
import type { JobEnd, JobRecord, JobStore } from '../../../supervisor/jobs/job-store.js';
import { MemoryStore, type KeepLimits } from '../../../supervisor/jobs/memory-store.js';
import { FakeWorker, newJob } from '../dispatch/jobs.js';

const HEAD = { status: 200, contentType: 'application/json', headers: '', phrase: '' };

beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
afterEach(() => mock.timers.reset());

let made = 0;
function jobsWith(limits: Partial<KeepLimits> = {}): KeptJobs {
  made = 0;
  const all = { keepMs: 1000, maxJobs: 10, maxBytes: 400, ...limits };
  return new KeptJobs(() => `job-${(made += 1)}`, {}, new MemoryStore(all));
}

/** Keeps a job that ends at once, with a result of this size. */
async function keepEnded(jobs: KeptJobs, bytes = 1): Promise<KeptJob> {
  const job = newJob('x');
  const kept = await jobs.keep(job);
  job.reply(HEAD, [Buffer.alloc(bytes, 0x31)], bytes, 1);
  return kept;
}

test('a job is queued, running, then succeeded with its result', async () => {
  const jobs = jobsWith();
  const job = newJob('x');
  const kept = await jobs.keep(job);
  assert.deepEqual([kept.id, kept.lookUpState(), kept.ended, kept.result], ['job-1', 'queued', false, null]);
  job.sendTo(new FakeWorker());
  assert.equal(kept.lookUpState(), 'queued', 'a job that was sent ahead waits in its worker');
  job.begin(performance.now());
  assert.equal(kept.lookUpState(), 'running');
  job.reply(HEAD, [Buffer.from('{"a"'), Buffer.from(':1}')], 7, 5);
  assert.deepEqual([kept.lookUpState(), kept.ended, kept.error], ['succeeded', true, null]);
  assert.deepEqual([kept.result?.head, kept.result?.body?.toString()], [HEAD, '{"a":1}']);
  assert.deepEqual(jobs.get('job-1'), kept);
  assert.equal(jobs.get('job-2'), null);
});

test('a result holds no more memory than its bytes', async () => {
  const { result } = await keepEnded(jobsWith(), 7);
  assert.deepEqual([result?.body?.length, result?.body?.buffer.byteLength], [7, 7]);
});

test('a job counts as running when its worker reports that it has begun', async () => {
  const job = newJob('x');
  const kept = await jobsWith().keep(job);
  job.sendTo({ index: 0, learnBegun: () => job.begin(1), abandon: () => {}, sendData: () => {} });
  assert.equal(kept.lookUpState(), 'running');
});

for (const [code, state] of [
  ['SERVE_INFERENCE_FAILED', 'failed'],
  ['SERVE_INFERENCE_TIMEOUT', 'failed'],
  ['SERVE_QUEUE_TIMEOUT', 'failed'],
  ['SERVE_SHUTTING_DOWN', 'failed'],
  ['SERVE_NOT_BEGUN', 'failed'],
  ['SERVE_WORKER_LOST', 'lost'],
] as const satisfies readonly (readonly [ErrorCode, string])[]) {
  test(`a job that ends with ${code} is ${state}`, async () => {
    const job = newJob('x');
    const kept = await jobsWith().keep(job);
    job.fail(new ServeError(code));
    assert.deepEqual(
      [kept.lookUpState(), kept.ended, kept.error?.code, kept.result],
      [state, true, code, null],
    );
  });
}

test('a result is a copy, so its memory may be reused', async () => {
  const job = newJob('x');
  const kept = await jobsWith().keep(job);
  const piece = Buffer.from('before');
  job.reply(HEAD, [piece], 6, 1);
  piece.fill(0);
  assert.equal(kept.result?.body?.toString(), 'before');
});

test('a stream is kept completely, with its head, and never makes its worker wait', async () => {
  const job = newJob('x');
  const kept = await jobsWith().keep(job);
  let taken = 0;
  job.head({ ...HEAD, status: 201 });
  job.chunk([Buffer.from('a')], () => (taken += 1));
  job.chunk([Buffer.from('b'), Buffer.from('c')], () => (taken += 1));
  assert.deepEqual([kept.ended, taken], [false, 2]);
  job.end(3);
  assert.deepEqual(
    [kept.lookUpState(), kept.result?.head.status, kept.result?.body?.toString()],
    ['succeeded', 201, 'abc'],
  );
});

test('a stream that breaks off fails the job, and nothing of it is kept', async () => {
  const job = newJob('x');
  const kept = await jobsWith().keep(job);
  job.head(HEAD);
  job.chunk([Buffer.from('a')], () => {});
  job.fail(new ServeError('SERVE_INFERENCE_FAILED'));
  assert.deepEqual([kept.lookUpState(), kept.result], ['failed', null]);
});

test('a result above a quarter of the limit is kept without its body, whole or streamed', async () => {
  const jobs = jobsWith({ maxBytes: 400 });
  assert.equal((await keepEnded(jobs, 100)).result?.body?.length, 100);
  const whole = await keepEnded(jobs, 101);
  assert.deepEqual([whole.lookUpState(), whole.result], ['succeeded', { head: HEAD, body: null }]);
  const job = newJob('x');
  const streamed = await jobs.keep(job);
  let taken = 0;
  for (let i = 0; i < 3; i += 1) job.chunk([Buffer.alloc(50)], () => (taken += 1));
  job.end(1);
  assert.deepEqual([streamed.lookUpState(), streamed.result?.body, taken], ['succeeded', null, 3]);
});

test('too many ended jobs are dropped, those that ended first; unfinished jobs never are', async () => {
  const jobs = jobsWith({ maxJobs: 2 });
  const waiting = await jobs.keep(newJob('waits'));
  const ended = [await keepEnded(jobs), await keepEnded(jobs), await keepEnded(jobs)];
  const known = [waiting, ...ended].map(({ id }) => jobs.get(id) !== null);
  assert.deepEqual(known, [true, false, true, true]);
  assert.equal(jobs.size, 3);
  assert.deepEqual(jobs.unfinished(), [waiting.id]);
});

test('the order of ends decides which job is dropped, not that of arrivals', async () => {
  const jobs = jobsWith({ maxJobs: 1 });
  const job = newJob('slow');
  const slow = await jobs.keep(job);
  const quick = await keepEnded(jobs);
  job.fail(new ServeError('SERVE_INFERENCE_FAILED'));
  assert.deepEqual([jobs.get(quick.id), jobs.get(slow.id)], [null, slow]);
});

test('if results have too many bytes, the oldest are dropped first', async () => {
  const jobs = jobsWith({ maxBytes: 400 });
  const ended: KeptJob[] = [];
  for (let i = 0; i < 5; i += 1) ended.push(await keepEnded(jobs, 100));
  assert.deepEqual(
    ended.map(({ id }) => jobs.get(id) !== null),
    [false, true, true, true, true],
  );
});

test('each job is dropped some time after its end', async () => {
  const jobs = jobsWith({ keepMs: 1000 });
  const waiting = await jobs.keep(newJob('waits'));
  const first = await keepEnded(jobs);
  mock.timers.tick(600);
  const second = await keepEnded(jobs);
  const known = (): boolean[] => [first, second, waiting].map(({ id }) => jobs.get(id) !== null);
  mock.timers.tick(399);
  assert.deepEqual(known(), [true, true, true]);
  mock.timers.tick(1);
  assert.deepEqual(known(), [false, true, true]);
  mock.timers.tick(600);
  assert.deepEqual(known(), [false, false, true]);
  assert.equal(jobs.size, 1);
});

test('a waiter is called once: at the end of the job, or at once if it has ended', async () => {
  const jobs = jobsWith();
  const job = newJob('x');
  const kept = await jobs.keep(job);
  const calls: string[] = [];
  kept.onceEnded(() => calls.push('waited'));
  const stop = kept.onceEnded(() => calls.push('left'));
  stop();
  assert.equal(calls.length, 0);
  job.fail(new ServeError('SERVE_INFERENCE_FAILED'));
  job.fail(new ServeError('SERVE_INFERENCE_FAILED'));
  assert.deepEqual(calls, ['waited']);
  kept.onceEnded(() => calls.push('late'));
  assert.deepEqual(calls, ['waited', 'late']);
});

test('a kept job has no deadline', async () => {
  const job = newJob('x', { deadlineAtMs: performance.now() + 5 });
  let fired = false;
  job.startDeadline(() => (fired = true));
  await jobsWith().keep(job);
  mock.timers.tick(10);
  assert.deepEqual([job.deadlineAtMs, fired], [null, false]);
});

test('headers of an answer and the detail of an error are not kept', async () => {
  const jobs = jobsWith();
  const answered = newJob('x');
  const kept = await jobs.keep(answered);
  answered.reply({ ...HEAD, headers: `X-Long\n${'x'.repeat(1000)}` }, [Buffer.from('1')], 1, 1);
  assert.deepEqual(kept.result?.head, HEAD);
  const failed = newJob('x');
  const lost = await jobs.keep(failed);
  failed.fail(new ServeError('SERVE_INFERENCE_FAILED', undefined, { detail: 'x'.repeat(1000) }));
  assert.deepEqual([lost.error?.code, lost.error?.detail], ['SERVE_INFERENCE_FAILED', '']);
});

test('the status and the issues with which an app refuses a job are kept, in its record too', async () => {
  const store = new Written();
  const job = newJob('x');
  const kept = await new KeptJobs(() => 'j', {}, store).keep(job);
  const issues = [{ path: ['age'], message: 'not a number' }];
  job.fail(new ServeError('SERVE_HTTP_ERROR', 'wrong', { status: 422, issues }));
  for (const known of [kept, new KeptJobs(() => 'k', {}, store).get('j')])
    assert.deepEqual([known?.error?.status, known?.error?.issues], [422, issues]);
});

/** A store that records all calls, and drops nothing. */
class Written implements JobStore {
  readonly records: JobRecord[] = [];
  readonly events: string[] = [];
  readonly ends: JobEnd[] = [];
  readonly maxResultBytes = 100;
  readonly size = 0;

  accept(
    record: JobRecord,
    { call, pieces }: { call: { requestId: string }; pieces: readonly Buffer[] },
  ): Promise<void> {
    this.records.push(record);
    this.events.push(`accepted ${record.id} for ${call.requestId} with ${pieces.length} pieces`);
    return Promise.resolve();
  }

  begun(id: string, begunAt: number): void {
    this.events.push(`begun ${id} at ${begunAt}`);
  }

  ended(id: string, end: JobEnd): void {
    this.events.push(`ended ${id} at ${end.endedAt}`);
    this.ends.push(end);
  }

  get(id: string): JobRecord | null {
    const [end = null] = this.ends;
    const record = this.records.find((candidate) => candidate.id === id);
    return record === undefined ? null : { ...record, end };
  }

  recover(): Promise<readonly JobRecord[]> {
    return Promise.resolve(this.records);
  }

  close(): void {
    this.events.push('closed');
  }
}

test('a store gets accept, begun and ended once for each job; records are data with calendar times', async () => {
  const store = new Written();
  const jobs = new KeptJobs(() => 'j', {}, store);
  const job = newJob('x');
  mock.timers.setTime(1000);
  await jobs.keep(job);
  job.sendTo(new FakeWorker());
  job.begin(performance.now());
  mock.timers.setTime(2000);
  for (let i = 0; i < 2; i += 1) assert.equal(jobs.get('j')?.lookUpState(), 'running');
  mock.timers.setTime(3000);
  job.reply(HEAD, [Buffer.from('1')], 1, 5);
  jobs.close();
  assert.deepEqual(store.events, [
    'accepted j for x with 0 pieces',
    'begun j at 2000',
    'ended j at 3000',
    'closed',
  ]);
  const facts = { id: 'j', requestId: 'x', model: 'model', version: '1', route: '/' };
  assert.deepEqual(store.records, [{ ...facts, createdAt: 1000, begunAt: null, end: null }]);
  assert.deepEqual(structuredClone(store.records), store.records);
});

test('a job from a record has its state, times, and result or error', async () => {
  const store = new Written();
  const failed = newJob('x');
  mock.timers.setTime(1000);
  const before = await new KeptJobs(() => 'j', {}, store).keep(failed);
  mock.timers.setTime(2500);
  failed.fail(new ServeError('SERVE_WORKER_LOST'));
  const later = new KeptJobs(() => 'k', {}, store).get('j');
  assert.deepEqual(
    [later?.lookUpState(), later?.createdAt, later?.endedAt],
    ['lost', new Date(1000), new Date(2500)],
  );
  assert.deepEqual(later?.error, before.error);
  assert.equal(JSON.stringify(store.ends), JSON.stringify(structuredClone(store.ends)));
});

/** A store that records or refuses a job when the test decides. */
class Slow extends Written {
  put = (): void => {};
  refuse: (error: Error) => void = () => {};

  override async accept(...given: Parameters<Written['accept']>): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.put = resolve;
      this.refuse = reject;
    });
    return super.accept(...given);
  }
}

test('a job is not known before it is recorded', async () => {
  const store = new Slow();
  const jobs = new KeptJobs(() => 'j', {}, store);
  const job = newJob('x', { deadlineAtMs: performance.now() + 60_000 });
  const keeping = jobs.keep(job);
  assert.deepEqual([jobs.get('j'), jobs.unfinished()], [null, []]);
  assert.notEqual(job.deadlineAtMs, null);
  store.put();
  const kept = await keeping;
  assert.deepEqual([jobs.get('j'), jobs.unfinished(), job.deadlineAtMs], [kept, ['j'], null]);
  mock.timers.tick(ACCEPT_LIMIT_MS);
  assert.deepEqual(store.events, ['accepted j for x with 0 pieces'], 'the limit ends with the wait');
});

for (const [how, accept] of [
  ['rejects', (): Promise<void> => Promise.reject(new Error('no space left'))],
  [
    'throws',
    (): Promise<void> => {
      throw new Error('no space left');
    },
  ],
] as const) {
  test(`keep rejects and leaves the job to its caller if the store ${how}`, async () => {
    const store = Object.assign(new Written(), { accept });
    const failures: string[] = [];
    const onNotKept = (call: { requestId: string }, { code, detail }: ServeError): void =>
      void failures.push(`${call.requestId} ${code} ${detail.split('\n', 1)[0] ?? ''}`);
    const jobs = new KeptJobs(() => 'j', { onNotKept }, store);
    let outcome = '';
    const job = newJob('x', { onSettled: (how) => (outcome = how) });
    await assert.rejects(jobs.keep(job), { code: 'SERVE_NOT_KEPT', retryAfterS: 5 });
    assert.deepEqual(failures, ['x SERVE_NOT_KEPT Error: no space left']);
    assert.deepEqual([jobs.get('j'), jobs.unfinished(), store.events], [null, [], []]);
    job.fail(new ServeError('SERVE_NOT_KEPT'));
    assert.equal(outcome, 'SERVE_NOT_KEPT');
  });
}

test('a store that takes too long fails the call, and a later record has failed too', async () => {
  const store = new Slow();
  const jobs = new KeptJobs(() => 'j', {}, store);
  const keeping = jobs.keep(newJob('x'));
  mock.timers.tick(ACCEPT_LIMIT_MS);
  await assert.rejects(keeping, { code: 'SERVE_NOT_KEPT' });
  assert.deepEqual(store.events, []);
  store.put();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(store.ends[0]?.error?.code, 'SERVE_NOT_KEPT');
  assert.equal(jobs.get('j')?.lookUpState(), 'failed');
  assert.deepEqual(jobs.unfinished(), []);
});

test('MemoryStore recovers nothing', async () => {
  assert.deepEqual(await new MemoryStore().recover(), []);
});

test('the newest jobs are those that were recorded last, as far as they are known', async () => {
  const jobs = jobsWith({ maxJobs: 2 });
  for (let i = 0; i < 3; i += 1) await keepEnded(jobs);
  await jobs.keep(newJob('x'));
  assert.deepEqual(
    jobs.newest().map(({ id }) => id),
    ['job-4', 'job-3', 'job-2'],
  );
});
