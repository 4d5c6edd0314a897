import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STREAM_WINDOW_BYTES } from '../../../protocol/wire/messages.js';
import { HeldBatch, clientWaitOf } from '../../../supervisor/calls/held-batch.js';
import { runTimeMs } from '../../../supervisor/calls/run-clock.js';
import { heldCall, sentCall } from './held-call.js';

for (const [name, atMs, beganAtMs] of [
  ['at the time of its worker', 150, 150],
  ['now, if its worker gives a time before it came', 99, 200],
  ['now, if its worker gives a time that is still to come', 201, 200],
] as const) {
  test(`a call begins ${name}, and has no grace from then on`, (t) => {
    t.mock.method(performance, 'now', () => 200);
    const batch = new HeldBatch(4000);
    const held = sentCall(1, { batch, acceptedAtMs: 100 });
    batch.begin(held, atMs);
    assert.deepEqual([batch.hasBegun, batch.beganAtMs, batch.graceMs], [true, beganAtMs, 0]);
    assert.deepEqual(
      [held.knownBegun, held.call.checkBegun(), held.call.queueMs(200)],
      [true, true, beganAtMs - 100],
    );
  });
}

test('the calls of a batch up to the one in the note have begun, those behind it have not', () => {
  const batch = new HeldBatch(0);
  const held = [1, 2, 3].map((id) => sentCall(id, { batch }));
  batch.begin(held[1] as (typeof held)[0], performance.now());
  assert.deepEqual(
    held.map(({ knownBegun, call }) => [knownBegun, call.checkBegun()]),
    [
      [true, true],
      [true, true],
      [false, false],
    ],
  );
});

test('a batch has one clock, which runs from the begin of its first call', (t) => {
  let nowMs = 100;
  t.mock.method(performance, 'now', () => nowMs);
  const batch = new HeldBatch(0);
  const [first, second] = [sentCall(1, { batch }), sentCall(2, { batch })];
  batch.begin(first, 100);
  nowMs = 150;
  batch.begin(second, 150);
  assert.equal(runTimeMs(batch, nowMs), 50);
});

test('the clock of a batch stands still only while each of its calls waits for its reader', (t) => {
  let nowMs = 100;
  t.mock.method(performance, 'now', () => nowMs);
  const batch = new HeldBatch(0);
  const [first, second, third] = [1, 2, 3].map((id) => heldCall(id, { batch }));
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const pass = (): number => runTimeMs(batch, (nowMs += 10));
  clientWaitOf(first).onSent(STREAM_WINDOW_BYTES);
  clientWaitOf(second).onSent(STREAM_WINDOW_BYTES);
  assert.equal(pass(), 10, 'the third still computes');
  batch.remove(third);
  assert.equal(pass(), 10);
  clientWaitOf(second).onRead(1);
  assert.equal(pass(), 20);
});

test('a batch holds up other calls while they wait and each of its calls waits for its client', () => {
  const begun: HeldBatch[] = [];
  const batch: HeldBatch = new HeldBatch(0, (one) => begun.push(one));
  const held = heldCall(1, { batch });
  const seen = [batch.holdsUp];
  const note = (change: () => void): unknown => (change(), seen.push(batch.holdsUp));
  note(() => clientWaitOf(held).onSent(STREAM_WINDOW_BYTES));
  note(() => (batch.othersWait = true));
  note(() => clientWaitOf(held).onRead(1));
  note(() => clientWaitOf(held).onSent(1));
  note(() => (batch.othersWait = false));
  assert.deepEqual(seen, [false, false, true, false, true, false]);
  assert.deepEqual(begun, [batch, batch]);
});

test('a message of the client does not take back the time in which others waited', (t) => {
  let nowMs = 100;
  t.mock.method(performance, 'now', () => nowMs);
  const batch = new HeldBatch(0);
  const wait = clientWaitOf(heldCall(1, { batch }));
  batch.othersWait = true;
  wait.onWaiting(0);
  nowMs += 50;
  wait.onClientMessage();
  assert.deepEqual([batch.heldUpMs, runTimeMs(batch, nowMs)], [50, 0]);
});

test('a call has one ClientWait, which is made when it is first needed', () => {
  const held = heldCall(1);
  assert.equal(held.clientWait, null);
  assert.equal(clientWaitOf(held), clientWaitOf(held));
  assert.equal(clientWaitOf(held), held.clientWait);
});
