/** Workers that run several calls at the same time. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Bench } from './dispatch-bench.js';
import type { FakeWorker } from './calls.js';

/** Workers with so many places each. */
function benchOf(t: TestContext, ...places: readonly number[]): Bench {
  return sizedBench(t, 100, places);
}

function sizedBench(t: TestContext, queueSize: number, places: readonly number[]): Bench {
  const bench = new Bench(t, places.length, { queueSize });
  bench.workers.forEach((worker, i) => (worker.places = places[i] as number));
  return bench;
}

const loads = ({ workers }: Bench): number[] => workers.map(({ load }) => load);

function submit(bench: Bench, count: number): void {
  for (let i = 0; i < count; i += 1) bench.submit(`call ${i}`);
}

test('a worker gets a call for each of its places, and none ahead, however short calls are', (t) => {
  const bench = benchOf(t, 3);
  bench.learn(1);
  submit(bench, 5);
  const [worker] = bench.workers as [FakeWorker];
  assert.deepEqual(
    [worker.ids, worker.batches],
    [
      ['call 0', 'call 1', 'call 2'],
      [1, 1, 1],
    ],
  );
  bench.finish(worker);
  assert.deepEqual(worker.ids, ['call 1', 'call 2', 'call 3']);
});

test('the least loaded worker is first', (t) => {
  const bench = benchOf(t, 4, 4, 4);
  submit(bench, 7);
  assert.deepEqual(loads(bench).sort(), [2, 2, 3]);
  const least = bench.workers.find(({ load }) => load === 2) as FakeWorker;
  bench.finish(least);
  bench.submit('next');
  assert.ok(least.ids.includes('next'));
});

test('beside a worker that runs one call at a time, the free places are filled before anything is sent ahead', (t) => {
  const bench = benchOf(t, 1, 2);
  bench.learn(1);
  submit(bench, 3);
  assert.deepEqual(loads(bench), [1, 2]);
});

test('a queue of size 0 takes as many calls as there are free places', (t) => {
  const bench = sizedBench(t, 0, [2]);
  submit(bench, 2);
  assert.throws(() => bench.submit('third'), { code: 'SERVE_QUEUE_FULL' });
});

test('calls wait for a worker only once all of its places are taken', (t) => {
  const bench = benchOf(t, 2);
  const [worker] = bench.workers as [FakeWorker];
  submit(bench, 2);
  assert.equal(worker.callersWait, false);
  bench.submit('waits');
  assert.equal(worker.callersWait, true);
  bench.finish(worker);
  assert.equal(worker.callersWait, false);
});

test('a call that would find a free place is not refused for its deadline', (t) => {
  const bench = benchOf(t, 2);
  bench.learn(1000);
  submit(bench, 1);
  assert.equal(bench.dispatcher.predictWaitMs(), 0);
  submit(bench, 3);
  assert.ok((bench.dispatcher.predictWaitMs() ?? 0) > 0);
});
