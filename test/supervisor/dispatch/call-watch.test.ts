/** The events of calls that a watch learns of, for the number of workers and the gauges of the load. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Bench } from './dispatch-bench.js';
import type { FakeWorker } from './calls.js';

function watched(
  t: TestContext,
  workers: number,
  limits: ConstructorParameters<typeof Bench>[2] = {},
): { bench: Bench; events: string[] } {
  const bench = new Bench(t, workers, limits);
  const events: string[] = [];
  bench.dispatcher.watch = {
    came: () => events.push('came'),
    waits: () => events.push('waits'),
    ran: (runMs, calls) => events.push(`ran ${runMs} ms with ${calls}`),
    refused: () => events.push('refused'),
  };
  return { bench, events };
}

test('a call that an idle worker takes at once does not wait; the next one does', (t) => {
  const { bench, events } = watched(t, 1);
  bench.submit('a');
  assert.deepEqual(events, ['came']);
  bench.submit('b');
  assert.deepEqual(events, ['came', 'came', 'waits']);
  bench.finish(bench.workers[0] as FakeWorker, 12);
  assert.deepEqual(events.slice(3), ['ran 12 ms with 1']);
  assert.equal(bench.dispatcher.service.slowMs, 12, 'forecasts learn of it too');
});

test('a call for which the queue has no place is refused', (t) => {
  const { bench, events } = watched(t, 0, { queueSize: 0 });
  assert.equal(bench.refusal()?.code, 'SERVE_QUEUE_FULL');
  assert.deepEqual(events, ['refused']);
});

test('a run that predicts nothing has its time since it began', (t) => {
  const { bench, events } = watched(t, 1);
  bench.submit('stream');
  const [worker] = bench.workers as [FakeWorker];
  worker.held[0]?.begin(bench.nowMs);
  bench.pass(70);
  const call = worker.release();
  bench.dispatcher.finished(call, null);
  assert.deepEqual(events, ['came', 'ran 70 ms with 1']);
});

test('without a worker, a call waits; one whose deadline comes before a start could end is refused', (t) => {
  const { bench, events } = watched(t, 0);
  bench.startsInMs = 500;
  assert.equal(bench.refusal(0, bench.nowMs + 499)?.code, 'SERVE_OVERLOADED');
  assert.deepEqual(events, ['refused']);
  assert.equal(bench.refusal(0, bench.nowMs + 501), null);
  bench.submit('a');
  assert.deepEqual(events, ['refused', 'came', 'waits']);
  assert.equal(bench.dispatcher.lines.findNewest()?.deadlineAtMs, null);
});
