import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { FROZEN_LOOK_MS, FrozenWatch } from '../../../supervisor/processes/frozen-watch.js';
import { Timers } from '../../../supervisor/processes/timers.js';

/** A worker that is idle, and the changes that the watch reported. */
function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const worker = { frozen: false, idle: true, looks: 0 };
  const changes: boolean[] = [];
  const timers = new Timers();
  t.after(() => timers.stopAll());
  const watch = new FrozenWatch(timers, {
    isFrozen: () => ((worker.looks += 1), worker.frozen),
    isIdle: () => worker.idle,
    onChange: (isFrozen) => changes.push(isFrozen),
  });
  watch.start();
  return { worker, changes, watch, pass: () => t.mock.timers.tick(FROZEN_LOOK_MS) };
}

test('an idle worker is looked at every few seconds, and each change is reported once', (t) => {
  const { worker, changes, watch, pass } = setUp(t);
  pass();
  worker.frozen = true;
  assert.equal(watch.isFrozen, false);
  for (let i = 0; i < 3; i += 1) pass();
  assert.deepEqual([changes, watch.isFrozen], [[true], true]);
  worker.frozen = false;
  for (let i = 0; i < 3; i += 1) pass();
  assert.deepEqual([changes, watch.isFrozen], [[true, false], false]);
});

test('a busy worker is looked at only if it was frozen before', (t) => {
  const { worker, changes, pass } = setUp(t);
  worker.idle = false;
  worker.frozen = true;
  pass();
  assert.equal(worker.looks, 0);
  worker.idle = true;
  pass();
  worker.idle = false;
  worker.frozen = false;
  pass();
  assert.deepEqual(changes, [true, false]);
});
