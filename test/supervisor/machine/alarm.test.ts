import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Alarm } from '../../../supervisor/machine/limit-timer.js';

function fakeTime(t: TestContext): { pass: (ms: number) => void } {
  let nowMs = 0;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => nowMs);
  const pass = (ms: number): void => {
    nowMs += ms;
    t.mock.timers.tick(ms);
  };
  return { pass };
}

test('an alarm rings once, at the earliest of the times that it was set to', (t) => {
  const { pass } = fakeTime(t);
  let rings = 0;
  const alarm = new Alarm(() => (rings += 1));
  for (const atMs of [20, 10, 30]) alarm.set(atMs);
  pass(9);
  assert.equal(rings, 0);
  pass(1);
  assert.equal(rings, 1);
  pass(100);
  assert.equal(rings, 1);
});

test('an alarm never rings early, and may be set anew once it has rung', (t) => {
  const { pass } = fakeTime(t);
  let rings = 0;
  const alarm = new Alarm(() => (rings += 1));
  alarm.set(1.4);
  pass(1);
  assert.equal(rings, 0);
  pass(1);
  alarm.set(5);
  alarm.stop();
  pass(10);
  assert.equal(rings, 1);
});
