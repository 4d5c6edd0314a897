import assert from 'node:assert/strict';
import { test } from 'node:test';
import { begin, turnsOf, type HeldCall } from '../../../supervisor/calls/held-call.js';
import { newJob } from '../dispatch/jobs.js';

function waiting(acceptedAtMs: number): HeldCall {
  const job = newJob('a', { acceptedAtMs });
  return {
    id: 1,
    job,
    knownBegun: false,
    beganAtMs: 0,
    graceMs: 4000,
    pausedMs: 0,
    pausedSinceMs: null,
    turns: null,
  };
}

for (const [name, atMs, beganAtMs] of [
  ['when its worker says', 150, 150],
  ['now, if its worker says a time before it came', 99, 200],
  ['now, if its worker says a time that is still to come', 201, 200],
] as const) {
  test(`a call begins ${name}, and has no grace from then on`, (t) => {
    t.mock.method(performance, 'now', () => 200);
    const call = waiting(100);
    begin(call, atMs);
    assert.deepEqual([call.knownBegun, call.beganAtMs, call.graceMs], [true, beganAtMs, 0]);
    assert.deepEqual([call.job.begun, call.job.queueMs(200)], [true, beganAtMs - 100]);
  });
}

test('a call has its turns from when they are first asked for, and always the same', () => {
  const call = waiting(0);
  assert.equal(call.turns, null);
  assert.equal(turnsOf(call), turnsOf(call));
  assert.equal(turnsOf(call), call.turns);
});
