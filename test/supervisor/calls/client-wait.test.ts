import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { STREAM_WINDOW_BYTES } from '../../../protocol/wire/messages.js';
import { clientWaitOf } from '../../../supervisor/calls/held-batch.js';
import { runTimeMs } from '../../../supervisor/calls/run-clock.js';
import type { ClientWait } from '../../../supervisor/calls/client-wait.js';
import { heldCall } from './held-call.js';

function bench(t: TestContext): { turns: ClientWait; pass: (ms: number) => void; used: () => number } {
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const call = heldCall(1);
  return { turns: clientWaitOf(call), pass: (ms) => (nowMs += ms), used: () => runTimeMs(call.batch, nowMs) };
}

test('time runs for the app, and stands while a whole window waits for its reader', (t) => {
  const { turns, pass, used } = bench(t);
  pass(5);
  turns.onSent(STREAM_WINDOW_BYTES - 1);
  pass(5);
  assert.equal(used(), 10);
  turns.onSent(1);
  pass(100);
  assert.equal(used(), 10);
  turns.onTaken(1);
  pass(5);
  assert.equal(used(), 15);
});

test('time stands while the app waits for its client, whatever that still has to read; what it says begins anew', (t) => {
  const { turns, pass, used } = bench(t);
  turns.onSent(10);
  pass(5);
  assert.equal(turns.onWaiting(0), true);
  turns.onTaken(10);
  pass(100);
  assert.equal(used(), 5);
  turns.onSaid();
  assert.equal(used(), 0);
  pass(7);
  turns.onSaid();
  assert.equal(used(), 7, 'more while it works is no new beginning');
});

test('an app that had not yet had all that was sent does not wait', (t) => {
  const { turns, pass, used } = bench(t);
  turns.onSaid();
  turns.onSaid();
  assert.equal(turns.onWaiting(1), false);
  pass(5);
  assert.equal(used(), 5);
  assert.equal(turns.onWaiting(2), true);
});
