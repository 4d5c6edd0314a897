import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Bench } from './dispatch-bench.js';
import type { FakeWorker } from './calls.js';

/** Workers whose routes take batches of any size. */
function batchBench(t: TestContext, workers: number, batchSize: number, maxBatchDelayMs: number): Bench {
  const bench = new Bench(t, workers, { queueSize: 1000, batchSize, maxBatchDelayMs });
  for (const worker of bench.workers) worker.largestBatch = 0xffff;
  return bench;
}

function submitAll(bench: Bench, ...ids: string[]): void {
  for (const id of ids) bench.submit(id);
}

test('with no delay an idle worker takes what is there, and all that came meanwhile the next time', (t) => {
  const bench = batchBench(t, 1, 4, 0);
  const [worker] = bench.workers as [FakeWorker];
  submitAll(bench, 'a', 'b', 'c');
  assert.deepEqual(worker.ids, ['a']);
  bench.finishBatch(worker);
  assert.deepEqual(worker.ids, ['b', 'c']);
  assert.deepEqual(worker.batches, [2]);
});

test('a call waits beside an idle worker for the delay, from its own arrival, and no longer', (t) => {
  const bench = batchBench(t, 1, 4, 5);
  const [worker] = bench.workers as [FakeWorker];
  submitAll(bench, 'a');
  bench.pass(3);
  submitAll(bench, 'b');
  assert.equal(worker.load, 0);
  bench.pass(2);
  assert.deepEqual(worker.batches, [2]);
});

test('a full batch waits for nothing, and no batch is larger than --batch-size', (t) => {
  const bench = batchBench(t, 1, 4, 1000);
  const [worker] = bench.workers as [FakeWorker];
  submitAll(bench, 'a', 'b', 'c', 'd', 'e', 'f');
  assert.deepEqual(worker.batches, [4]);
  assert.equal(bench.dispatcher.queued, 2);
});

test('a route that takes one call at a time gets no batch and waits for none, with any --batch-size', (t) => {
  const bench = batchBench(t, 1, 4, 1000);
  const [worker] = bench.workers as [FakeWorker];
  worker.largestBatch = 1;
  submitAll(bench, 'a', 'b');
  assert.deepEqual(worker.batches, [1]);
});

test('a batch is of one route; of those that are due, the route whose call came first is served first', (t) => {
  const bench = batchBench(t, 1, 4, 5);
  const [worker] = bench.workers as [FakeWorker];
  bench.submit('x1', { route: '/x' });
  bench.submit('y1', { route: '/y' });
  bench.submit('x2', { route: '/x' });
  bench.submit('y2', { route: '/y' });
  bench.pass(5);
  assert.deepEqual(worker.ids, ['x1', 'x2']);
  bench.finishBatch(worker);
  assert.deepEqual(worker.ids, ['y1', 'y2']);
});

test('a full batch of one route overtakes a call of another route that still waits for others', (t) => {
  const bench = batchBench(t, 1, 2, 5);
  const [worker] = bench.workers as [FakeWorker];
  bench.submit('x', { route: '/x' });
  bench.submit('y1', { route: '/y' });
  bench.submit('y2', { route: '/y' });
  assert.deepEqual(worker.ids, ['y1', 'y2']);
});

test('while a batch runs one more goes ahead once it is full, and not a third', (t) => {
  const bench = batchBench(t, 1, 2, 1000);
  const [worker] = bench.workers as [FakeWorker];
  bench.learn(10);
  submitAll(bench, 'a', 'b', 'c');
  assert.deepEqual(worker.batches, [2]);
  submitAll(bench, 'd', 'e', 'f');
  assert.deepEqual(worker.batches, [2, 2]);
  assert.equal(bench.dispatcher.queued, 2);
});

test('a batch that is not full goes ahead when the running one is about to end: until then others may join it', (t) => {
  const bench = batchBench(t, 1, 4, 0);
  const [worker] = bench.workers as [FakeWorker];
  bench.learn(10);
  submitAll(bench, 'a', 'b');
  assert.deepEqual(worker.batches, [1]);
  worker.runningMs = 7;
  bench.pass(7);
  submitAll(bench, 'c');
  assert.deepEqual(worker.batches, [1]);
  worker.runningMs = 8;
  bench.pass(1);
  assert.deepEqual(worker.batches, [1, 2]);
});

test('one slow run does not keep the next batch from going ahead', (t) => {
  const bench = batchBench(t, 1, 2, 1000);
  const [worker] = bench.workers as [FakeWorker];
  bench.learn(10);
  bench.dispatcher.service.add(60, 0);
  submitAll(bench, 'a', 'b', 'c', 'd');
  assert.deepEqual(worker.batches, [2, 2]);
});

test('a route that takes one call at a time is sent ahead by the rule for calls, beside routes that take batches', (t) => {
  const bench = batchBench(t, 1, 2, 0);
  const [worker] = bench.workers as [FakeWorker];
  worker.largestBatch = 1;
  bench.learn(10);
  bench.dispatcher.service.add(60, 0);
  submitAll(bench, 'a', 'b');
  assert.deepEqual(worker.batches, [1]);
});

test('a full batch does not go ahead into one of two workers before it is known which ends first', (t) => {
  const bench = batchBench(t, 2, 2, 0);
  bench.learn(10);
  submitAll(bench, 'a', 'b');
  const [first, second] = bench.workers as [FakeWorker, FakeWorker];
  first.runningMs = 3;
  submitAll(bench, 'c', 'd');
  assert.deepEqual([first.load, second.load], [1, 1]);
  [first.runningMs, second.runningMs] = [8, 5];
  bench.pass(5);
  assert.deepEqual([first.batches, second.batches], [[1, 2], [1]]);
});

test('--batch-size and --max-batch-delay change while calls wait', (t) => {
  const bench = batchBench(t, 1, 4, 1000);
  const [worker] = bench.workers as [FakeWorker];
  submitAll(bench, 'a', 'b');
  assert.equal(worker.load, 0);
  bench.dispatcher.limits = {
    queueSize: 9,
    queueTimeoutMs: 1000,
    batchSize: 2,
    maxBatchDelayMs: 1000,
  };
  bench.pass(1);
  assert.deepEqual(worker.batches, [2]);
});

test('a call with a deadline waits for others no longer than its deadline allows', (t) => {
  const bench = batchBench(t, 1, 4, 1000);
  const [worker] = bench.workers as [FakeWorker];
  bench.learn(10);
  bench.submit('a', { deadlineAtMs: bench.nowMs + 50 });
  bench.pass(27);
  assert.equal(worker.load, 0);
  bench.pass(1);
  assert.equal(worker.load, 1, 'twice its run time, and a slack, before its deadline');
});

test('a call with a deadline does not wait for others before run times are known', (t) => {
  const bench = batchBench(t, 1, 4, 1000);
  bench.submit('a', { deadlineAtMs: bench.nowMs + 50 });
  assert.equal(bench.workers[0]?.load, 1);
});

test('run times are measured by the batch: each counts once, with its number of calls', (t) => {
  const bench = batchBench(t, 1, 4, 0);
  const [worker] = bench.workers as [FakeWorker];
  for (let i = 0; i < 5; i += 1) {
    submitAll(bench, `${i}`, ...['b', 'c', 'd', 'e'].map((name) => `${i}${name}`));
    bench.finishBatch(worker, 6);
    bench.finishBatch(worker, 9);
  }
  const { service } = bench.dispatcher;
  assert.equal(service.meanMs, 7.5);
  assert.equal(service.predictMs(1, 1), 6);
  assert.equal(service.predictMs(4, 1), 9);
  assert.equal(service.predictMs(8, 2), 18);
});

test('Retry-After counts the batches that wait, not the calls', (t) => {
  const bench = batchBench(t, 1, 10, 0);
  bench.learn(1000);
  for (let i = 0; i < 101; i += 1) bench.submit(`${i}`);
  assert.equal(bench.dispatcher.retryAfterS(), 11, 'ten batches and half of the one that runs');
});

test('the calls of a batch that had not begun when its worker died go back to the head of their line, in order', (t) => {
  const bench = batchBench(t, 1, 3, 0);
  const [worker] = bench.workers as [FakeWorker];
  submitAll(bench, 'a', 'b', 'c', 'd', 'e');
  bench.finishBatch(worker);
  assert.deepEqual(worker.ids, ['b', 'c', 'd']);
  bench.lose(worker);
  bench.addWorker(0xffff);
  assert.deepEqual(bench.workers[0]?.ids, ['b', 'c', 'd']);
  assert.equal(bench.dispatcher.queued, 1);
});
