import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { STREAM_WINDOW_BYTES } from '../../../protocol/wire/limits.js';
import { HeldBatch, type HeldCall } from '../../../supervisor/calls/held-batch.js';
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
    assert.deepEqual([batch.hasBegun, batch.beganAtMs, batch.usedMs(beganAtMs)], [true, beganAtMs, 0]);
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
  assert.equal(batch.usedMs(nowMs), 50);
});

test('the clock of a batch stands still only while each of its calls waits for its reader', (t) => {
  let nowMs = 100;
  t.mock.method(performance, 'now', () => nowMs);
  const batch = new HeldBatch(0);
  const [first, second, third] = [1, 2, 3].map((id) => heldCall(id, { batch }));
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const pass = (): number => batch.usedMs((nowMs += 10));
  first.countUnread(STREAM_WINDOW_BYTES);
  second.countUnread(STREAM_WINDOW_BYTES);
  assert.equal(pass(), 10, 'the third still computes');
  batch.remove(third);
  assert.equal(pass(), 10);
  second.countUnread(-1);
  assert.equal(pass(), 20);
});

test('a batch holds up other calls while they wait and each of its calls waits for its client', () => {
  const begun: HeldBatch[] = [];
  const batch: HeldBatch = new HeldBatch(0, (one) => begun.push(one));
  const held = heldCall(1, { batch });
  const seen = [batch.holdsUp];
  const note = (change: () => void): unknown => (change(), seen.push(batch.holdsUp));
  note(() => held.countUnread(STREAM_WINDOW_BYTES));
  note(() => (batch.othersWait = true));
  note(() => held.countUnread(-1));
  note(() => held.countUnread(1));
  note(() => (batch.othersWait = false));
  assert.deepEqual(seen, [false, false, true, false, true, false]);
  assert.deepEqual(begun, [batch, batch]);
});

test('a message of the client does not take back the time in which others waited', (t) => {
  let nowMs = 100;
  t.mock.method(performance, 'now', () => nowMs);
  const batch = new HeldBatch(0);
  const held = heldCall(1, { batch });
  batch.othersWait = true;
  held.onAppWaits(0);
  nowMs += 50;
  held.onClientMessage();
  assert.equal(batch.usedMs(nowMs), 0);
  held.onAppWaits(1);
  assert.equal(batch.usedMs(nowMs), 50, 'it holds them up again');
});

function bench(t: TestContext): { held: HeldCall; pass: (ms: number) => void; used: () => number } {
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const held = heldCall(1);
  return { held, pass: (ms) => (nowMs += ms), used: () => held.batch.usedMs(nowMs) };
}

test('the clock runs for the app, and stands still while a whole window waits for its reader', (t) => {
  const { held, pass, used } = bench(t);
  pass(5);
  held.countUnread(STREAM_WINDOW_BYTES - 1);
  pass(5);
  assert.equal(used(), 10);
  held.countUnread(1);
  pass(100);
  assert.equal(used(), 10);
  held.countUnread(-1);
  pass(5);
  assert.equal(used(), 15);
});

test('the clock stands still while the app waits for its client, which may still be reading; a message of the client restarts it', (t) => {
  const { held, pass, used } = bench(t);
  held.countUnread(10);
  pass(5);
  assert.equal(held.onAppWaits(0), true);
  held.countUnread(-10);
  pass(100);
  assert.equal(used(), 5);
  held.onClientMessage();
  assert.equal(used(), 0);
  pass(7);
  held.onClientMessage();
  assert.equal(used(), 7, 'more while it works is no new beginning');
});

test('an app that has not received everything does not wait', (t) => {
  const { held, pass, used } = bench(t);
  held.onClientMessage();
  held.onClientMessage();
  assert.equal(held.onAppWaits(1), false);
  pass(5);
  assert.equal(used(), 5);
  assert.equal(held.onAppWaits(2), true);
});
