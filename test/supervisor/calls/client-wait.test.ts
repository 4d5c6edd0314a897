import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { STREAM_WINDOW_BYTES } from '../../../protocol/wire/messages.js';
import { clientWaitOf } from '../../../supervisor/calls/held-batch.js';
import { runTimeMs } from '../../../supervisor/calls/run-clock.js';
import type { ClientWait } from '../../../supervisor/calls/client-wait.js';
import { heldCall } from './held-call.js';

function bench(t: TestContext): { wait: ClientWait; pass: (ms: number) => void; used: () => number } {
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const held = heldCall(1);
  return { wait: clientWaitOf(held), pass: (ms) => (nowMs += ms), used: () => runTimeMs(held.batch, nowMs) };
}

test('the clock runs for the app, and stands still while a whole window waits for its reader', (t) => {
  const { wait, pass, used } = bench(t);
  pass(5);
  wait.onSent(STREAM_WINDOW_BYTES - 1);
  pass(5);
  assert.equal(used(), 10);
  wait.onSent(1);
  pass(100);
  assert.equal(used(), 10);
  wait.onRead(1);
  pass(5);
  assert.equal(used(), 15);
});

test('the clock stands still while the app waits for its client, which may still be reading; a message of the client restarts it', (t) => {
  const { wait, pass, used } = bench(t);
  wait.onSent(10);
  pass(5);
  assert.equal(wait.onWaiting(0), true);
  wait.onRead(10);
  pass(100);
  assert.equal(used(), 5);
  wait.onClientMessage();
  assert.equal(used(), 0);
  pass(7);
  wait.onClientMessage();
  assert.equal(used(), 7, 'more while it works is no new beginning');
});

test('an app that has not received everything does not wait', (t) => {
  const { wait, pass, used } = bench(t);
  wait.onClientMessage();
  wait.onClientMessage();
  assert.equal(wait.onWaiting(1), false);
  pass(5);
  assert.equal(used(), 5);
  assert.equal(wait.onWaiting(2), true);
});
