import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { StartSpec } from '../../../protocol/wire/messages.js';
import { FROZEN_LOOK_MS, WorkerHandle } from '../../../supervisor/processes/worker-handle.js';
import type { LoadedLimits } from '../../../supervisor/processes/worker-listener.js';
import { nextTurn } from '../../protocol/streams.js';
import { newCall } from '../dispatch/calls.js';
import { FakeProcess } from '../models/fake-process.js';

const LIMIT = { ms: 1e6, name: '--limit' };
const LIMITS: LoadedLimits = {
  initTimeout: LIMIT,
  runTimeout: LIMIT,
  maxOutputBytes: 1000,
  startBatchSize: 1,
};

/** A ready worker, and the changes that it reported. */
async function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => 1000); // timers are never late
  const process = new FakeProcess(1, () => {});
  const changes: boolean[] = [];
  const worker = new WorkerHandle(process.process, { worker: 0 } as StartSpec, LIMITS, {
    loaded: () => LIMITS,
    finished: () => {},
    told: (event) => void (event.type === 'frozen' && changes.push(event.isFrozen)),
  });
  process.becomeReady();
  await nextTurn();
  assert.equal(worker.state, 'ready');
  t.after(async () => {
    process.end();
    await nextTurn(); // its timers end with it
  });
  return { process, worker, changes, pass: () => t.mock.timers.tick(FROZEN_LOOK_MS) };
}

test('an idle worker is looked at every few seconds, and each change is reported once', async (t) => {
  const { process, worker, changes, pass } = await setUp(t);
  pass();
  process.isFrozen = true;
  assert.equal(worker.isFrozen, false);
  for (let i = 0; i < 3; i += 1) pass();
  assert.deepEqual([changes, worker.isFrozen], [[true], true]);
  process.isFrozen = false;
  for (let i = 0; i < 3; i += 1) pass();
  assert.deepEqual([changes, worker.isFrozen], [[true, false], false]);
});

test('a busy worker is looked at only if it was frozen before', async (t) => {
  const { process, worker, changes, pass } = await setUp(t);
  process.isFrozen = true;
  worker.assign([newCall('a')]);
  pass();
  assert.deepEqual(changes, []);
  worker.takeUnbegun();
  pass();
  worker.assign([newCall('b')]);
  process.isFrozen = false;
  pass();
  assert.deepEqual(changes, [true, false]);
});
