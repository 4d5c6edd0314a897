/** A model in one second: the changes of its counters, and its gauges. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ModelCalls } from '../../../../supervisor/metrics/call-counts.js';
import { ModelMeter } from '../../../../supervisor/status/live/model-meter.js';
import type { Model } from '../../../../supervisor/models/model.js';

function modelWith(workers: number, dispatcher: object): Model {
  return { crew: { ready: { length: workers } }, dispatcher } as unknown as Model;
}

const IDLE = modelWith(1, { queued: 0, arriving: 0, inFlight: 0 });

test('a second has the calls that ended in it, by outcome', () => {
  const calls = new ModelCalls();
  calls.ended('banana', 'ok');
  const meter = new ModelMeter(IDLE, calls);
  meter.measure(null, 0);
  assert.equal(meter.sample.calls, 1, 'the first second begins with the model');
  calls.ended('banana', 'ok');
  calls.ended('gateway', 'ok');
  calls.ended('banana', 'SERVE_DEADLINE');
  meter.measure(null, 0);
  assert.deepEqual([meter.sample.calls, meter.sample.failed], [3, 1]);
  assert.deepEqual(meter.errors, { SERVE_DEADLINE: 1 });
  meter.measure(null, 0);
  assert.deepEqual([meter.sample.calls, meter.errors], [0, {}]);
});

test('percentiles are of the calls of the second alone', () => {
  const calls = new ModelCalls();
  calls.runSeconds.add(50);
  const meter = new ModelMeter(IDLE, calls);
  meter.measure(null, 0);
  for (let i = 0; i < 99; i += 1) calls.runSeconds.add(0.003);
  calls.runSeconds.add(8);
  calls.queueSeconds.add(0.0002);
  meter.measure(null, 0);
  const { runP50Ms, runP99Ms, queueP50Ms } = meter.sample;
  assert.ok(Number(runP50Ms) > 2.5 && Number(runP50Ms) <= 5, `${runP50Ms}`);
  assert.ok(Number(runP99Ms) <= 5, `${runP99Ms}`);
  assert.ok(Number(queueP50Ms) > 0.1 && Number(queueP50Ms) <= 0.25, `${queueP50Ms}`);
  meter.measure(null, 0);
  assert.equal(meter.sample.runP50Ms, null, 'no call ended');
});

test('the last minute has its own percentiles, and forgets what is older', () => {
  const calls = new ModelCalls();
  const meter = new ModelMeter(IDLE, calls);
  calls.runSeconds.add(50);
  meter.measure(null, 0);
  for (let i = 0; i < 100; i += 1) calls.runSeconds.add(0.003);
  meter.measure(null, 0);
  assert.ok(Number(meter.minute.runP95Ms) <= 5, `${meter.minute.runP95Ms}`);
  assert.equal(meter.minute.queueP95Ms, null);
  for (let second = 0; second < 57; second += 1) meter.measure(null, 0);
  assert.notEqual(meter.minute.runP95Ms, null);
  meter.measure(null, 3);
  assert.equal(meter.minute.runP95Ms, null, 'no call ended in the last minute');
});

test('the batch size is the mean of the batches that ended', () => {
  const calls = new ModelCalls();
  const meter = new ModelMeter(IDLE, calls);
  calls.began(1);
  for (let i = 0; i < 4; i += 1) calls.began(4);
  meter.measure(null, 0);
  assert.equal(meter.sample.batchSize, 2.5);
  meter.measure(null, 0);
  assert.equal(meter.sample.batchSize, null);
});

test('gauges are those of the moment; seconds that were missed have no figures', () => {
  const dispatcher = { queued: 3, arriving: 2, inFlight: 1 };
  const meter = new ModelMeter(modelWith(4, dispatcher), new ModelCalls());
  meter.measure(1000, 0);
  dispatcher.queued = 5;
  meter.measure(null, 2);
  const { waiting, arriving, running, readyWorkers, memoryBytes } = meter.history.describe().columns;
  assert.deepEqual(waiting, [3, null, null, 5]);
  assert.deepEqual([arriving[0], running[0], readyWorkers[0]], [2, 1, 4]);
  assert.deepEqual(memoryBytes, [1000, null, null, null]);
});
