/** Bounds of the store in memory: how many ended jobs it keeps, and how long. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { MemoryStore, type KeepLimits } from '../../../supervisor/jobs/memory-store.js';
import { JobsBench } from './jobs.js';

beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
afterEach(() => mock.timers.reset());

function benchWith(limits: Partial<KeepLimits>): JobsBench {
  return new JobsBench(new MemoryStore({ keepMs: 1000, maxJobs: 10, maxBytes: 400, ...limits }));
}

async function known(bench: JobsBench, jobs: readonly { readonly id: string }[]): Promise<boolean[]> {
  return Promise.all(jobs.map(async ({ id }) => (await bench.jobs.get(id)) !== null));
}

test('too many ended jobs are dropped, those that ended first; unfinished jobs never are', async () => {
  const bench = benchWith({ maxJobs: 2 });
  const ended = [await bench.end(), await bench.end(), await bench.end()];
  const waiting = await bench.accept();
  assert.deepEqual(await known(bench, [waiting, ...ended]), [true, false, true, true]);
  assert.equal(bench.jobs.size, 3);
});

test('the order of ends decides which job is dropped, not that of arrivals', async () => {
  const bench = benchWith({ maxJobs: 1 });
  const slow = await bench.accept();
  const job = await bench.begin();
  const quick = await bench.end();
  job.fail(new ServeError('SERVE_INFERENCE_FAILED'));
  assert.deepEqual(await known(bench, [quick, slow]), [false, true]);
});

test('if results have too many bytes, the oldest are dropped first', async () => {
  const bench = benchWith({ maxBytes: 400 });
  const ended = [];
  for (let i = 0; i < 5; i += 1) ended.push(await bench.end(100));
  assert.deepEqual(await known(bench, ended), [false, true, true, true, true]);
});

test('each job is dropped some time after its end', async () => {
  const bench = benchWith({ keepMs: 1000 });
  const first = await bench.end();
  mock.timers.tick(600);
  const second = await bench.end();
  const waiting = await bench.accept();
  const jobs = [first, second, waiting];
  mock.timers.tick(399);
  assert.deepEqual(await known(bench, jobs), [true, true, true]);
  mock.timers.tick(1);
  assert.deepEqual(await known(bench, jobs), [false, true, true]);
  mock.timers.tick(600);
  assert.deepEqual(await known(bench, jobs), [false, false, true]);
  assert.equal(bench.jobs.size, 1);
});
