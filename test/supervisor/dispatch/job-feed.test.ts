/** Jobs that wait in a store: a worker pulls them when it is free, in turn with calls. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import type { BatchWorker } from '../../../supervisor/dispatch/batcher.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import type { JobFeed } from '../../../supervisor/dispatch/job-feed.js';
import { Bench } from './dispatch-bench.js';
import { newCall, type FakeWorker } from './calls.js';

/** A store of jobs whose pulls end when the test says so. */
class FakeFeed implements JobFeed {
  readonly needsApp = false;
  readonly stored: string[] = [];
  readonly givenBack: string[] = [];
  readonly outcomes = new Map<string, string>();
  readonly #pulls: (() => void)[] = [];

  get waiting(): number {
    return this.stored.length;
  }

  get pulls(): number {
    return this.#pulls.length;
  }

  async pull(worker: BatchWorker): Promise<readonly Call[]> {
    await new Promise<void>((resolve) => this.#pulls.push(resolve));
    return this.stored.splice(0, worker.maxBatch('/')).map((id) => {
      const call = newCall(id, { onSettled: (outcome) => this.outcomes.set(id, outcome) });
      call.onGivenBack = () => this.givenBack.push(id);
      return call;
    });
  }

  close(): void {}

  /** Ends all pulls. */
  async answer(): Promise<void> {
    for (const end of this.#pulls.splice(0)) end();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function open(t: TestContext, workers: number, limits = {}): { bench: Bench; feed: FakeFeed } {
  const feed = new FakeFeed();
  return { bench: new Bench(t, workers, { ...limits, feed }), feed };
}

const at = (bench: Bench, index = 0): FakeWorker => bench.workers[index] as FakeWorker;

test('a job stays in its store until a worker is free, and a batch of them begins together', async (t) => {
  const { bench, feed } = open(t, 1);
  bench.submit('call');
  feed.stored.push('a', 'b', 'c');
  at(bench).largestBatch = 2;
  bench.dispatcher.pump();
  assert.deepEqual([feed.pulls, bench.dispatcher.queued], [0, 3]);
  bench.finish(at(bench));
  await feed.answer();
  assert.deepEqual([at(bench).ids, at(bench).batches], [['a', 'b'], [2]]);
  assert.deepEqual([feed.stored, bench.dispatcher.inFlight], [['c'], 2]);
});

test('a worker that pulls gets no call meanwhile, and the next one if nothing was due', async (t) => {
  const { bench, feed } = open(t, 1);
  feed.stored.push('taken elsewhere');
  bench.dispatcher.pump();
  bench.submit('call');
  assert.deepEqual([at(bench).ids, feed.pulls], [[], 1]);
  const pulled = feed.stored.splice.bind(feed.stored);
  feed.stored.splice = () => []; // it is still counted here
  await feed.answer();
  assert.deepEqual([at(bench).ids, feed.pulls], [['call'], 0]);
  bench.finish(at(bench));
  assert.equal(feed.pulls, 0, 'it would find nothing either');
  feed.stored.splice = pulled;
  bench.dispatcher.pump();
  assert.equal(feed.pulls, 1);
});

test('one job is pulled by one worker, while another takes calls', (t) => {
  const { bench, feed } = open(t, 2);
  feed.stored.push('a');
  bench.dispatcher.pump();
  bench.submit('call');
  assert.deepEqual([feed.pulls, bench.workers.flatMap(({ ids }) => ids)], [1, ['call']]);
});

test('while both wait, a worker takes a call and a job in turn, and nothing is sent ahead', async (t) => {
  const { bench, feed } = open(t, 1, { queueSize: 100 });
  bench.learn(1);
  bench.submit('first');
  feed.stored.push('a', 'b', 'c');
  bench.dispatcher.pump();
  for (let i = 0; i < 3; i += 1) bench.submit(`call ${i}`);
  const began: string[] = [];
  for (let i = 0; i < 7; i += 1) {
    assert.equal(at(bench).load, 1);
    began.push(...at(bench).ids);
    bench.finish(at(bench));
    await feed.answer();
  }
  assert.deepEqual(began, ['first', 'call 0', 'a', 'call 1', 'b', 'call 2', 'c']);
});

test('calls that wait for others to fill their batch do not keep jobs waiting', async (t) => {
  const { bench, feed } = open(t, 1, { batchSize: 4, maxBatchDelayMs: 1000 });
  at(bench).largestBatch = 4;
  bench.submit('call');
  feed.stored.push('a');
  bench.dispatcher.pump();
  await feed.answer();
  assert.deepEqual(at(bench).ids, ['a']);
});

test('a job whose worker dies before it begins goes back to its store, one that began is lost', async (t) => {
  const { bench, feed } = open(t, 2);
  feed.stored.push('a', 'b');
  bench.dispatcher.pump();
  await feed.answer();
  const [first, second] = bench.workers as [FakeWorker, FakeWorker];
  second.begin();
  bench.lose(first);
  bench.lose(second);
  assert.deepEqual([feed.givenBack, [...feed.outcomes]], [['a'], [['b', 'SERVE_WORKER_LOST']]]);
  assert.equal(bench.dispatcher.inFlight, 0);
});

test('jobs that were pulled for a worker which is gone by then go back', async (t) => {
  const { bench, feed } = open(t, 1);
  feed.stored.push('a');
  bench.dispatcher.pump();
  bench.lose(at(bench));
  await feed.answer();
  assert.deepEqual(feed.givenBack, ['a']);
});

test('no job is pulled for a frozen worker unless all are', (t) => {
  const { bench, feed } = open(t, 2);
  feed.stored.push('a', 'b');
  at(bench).isFrozen = true;
  bench.dispatcher.pump();
  assert.equal(feed.pulls, 1);
  at(bench, 1).isFrozen = true;
  bench.dispatcher.pump();
  assert.equal(feed.pulls, 2);
});

test('when calls are cut off, a job that began is lost but stays with its worker, one that did not has until its death', async (t) => {
  const { bench, feed } = open(t, 2);
  feed.stored.push('a', 'b');
  bench.dispatcher.pump();
  await feed.answer();
  at(bench).begin();
  const [begun, notBegun] = [new ServeError('SERVE_WORKER_LOST'), new ServeError('SERVE_SHUTTING_DOWN')];
  bench.dispatcher.failNotBegun(notBegun);
  assert.deepEqual([...feed.outcomes], []);
  bench.dispatcher.failInFlight(begun, notBegun);
  assert.deepEqual([[...feed.outcomes], feed.givenBack], [[['a', 'SERVE_WORKER_LOST']], []]);
  assert.deepEqual([at(bench).abandoned.length, bench.dispatcher.inFlight], [1, 2]);
  for (const worker of [...bench.workers]) bench.lose(worker);
  assert.deepEqual([[...feed.outcomes], feed.givenBack], [[['a', 'SERVE_WORKER_LOST']], ['b']]);
});

test('a worker with several places pulls for one of them, and takes calls into the others', async (t) => {
  const { bench, feed } = open(t, 1);
  at(bench).places = 3;
  feed.stored.push('a');
  bench.dispatcher.pump();
  bench.submit('call 0');
  bench.submit('call 1');
  bench.submit('call 2');
  assert.deepEqual([feed.pulls, at(bench).ids], [1, ['call 0', 'call 1']]);
  await feed.answer();
  assert.deepEqual(at(bench).ids, ['call 0', 'call 1', 'a']);
});
