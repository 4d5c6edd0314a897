import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { STREAM_WINDOW_BYTES } from '../../../protocol/wire/limits.js';
import { HeldBatch, type CallHolder, type HeldCall } from '../../../supervisor/calls/held-batch.js';
import type { NamedLimit } from '../../../supervisor/machine/limit-timer.js';
import { ABORT_GRACE_MS, MIN_BEGIN_MS, RunTimeout, PONG_MS } from '../../../supervisor/calls/run-timeout.js';
import { FakeChannel, heldCall, sentCall } from './held-call.js';

const LIMIT_MS = 1000;

const limitOf = (ms: number): NamedLimit => ({ ms, name: '--run-timeout' });

/** The timeout of a worker with fake calls, and mocked time. */
function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 10_000;
  t.mock.method(performance, 'now', () => nowMs);
  const channel = new FakeChannel();
  const held: HeldBatch[] = [];
  const story: string[] = [];
  const state = { places: 1 };
  const worker: Partial<CallHolder> = {
    channel: channel.asChannel,
    get active() {
      return held.slice(0, state.places);
    },
    lookUpActive: () => held.slice(0, state.places),
    abandon: (call) => story.push(`abandon ${call.message.requestId}`),
    onCallError: (call, { code }) => story.push(`log ${call.message.requestId} ${code}`),
    kill: (cause) => story.push(cause),
    leave: () => story.push('no more calls'),
  };
  const timeout = new RunTimeout(limitOf(LIMIT_MS), worker as CallHolder);
  return {
    channel,
    held,
    timeout,
    story,
    state,
    /** A call has ended in the worker. */
    end: (one: HeldCall): void => {
      one.batch.remove(one);
      held.splice(held.indexOf(one.batch), 1);
      timeout.onEnded();
    },
    /** Holds one more call, which has begun. */
    take: (id: number): HeldCall => {
      const taken = heldCall(id, {
        batch: timeout.newBatch(),
        onSettled: (outcome) => story.push(`r${id} ${outcome}`),
      });
      held.push(taken.batch);
      timeout.start(taken.batch);
      return taken;
    },
    pass: (ms: number): void => {
      for (let i = 0; i < ms; i += 1) {
        nowMs += 1;
        t.mock.timers.tick(1);
      }
    },
  };
}

const TIMED_OUT = ['log r7 SERVE_INFERENCE_TIMEOUT', 'r7 SERVE_INFERENCE_TIMEOUT'];
const CANCEL = { type: 'cancel', id: 7, reason: 'the run timeout passed' };

test('a call over the limit fails and is cancelled; its worker is killed if it still holds it after the grace', (t) => {
  const { take, pass, story, channel } = setUp(t);
  take(7);
  pass(LIMIT_MS - 1);
  assert.deepEqual(story, []);
  pass(1);
  assert.deepEqual(story, TIMED_OUT);
  assert.deepEqual(channel.sent, [CANCEL]);
  assert.equal(channel.flushes, 1);
  pass(ABORT_GRACE_MS - 1);
  assert.deepEqual(story, TIMED_OUT);
  pass(1);
  assert.deepEqual(story, [...TIMED_OUT, 'run timeout']);
});

test('the calls of a batch share one limit: each fails, and the worker is killed if one of them stays', (t) => {
  const { take, held, pass, story, channel } = setUp(t);
  const { batch } = take(7);
  heldCall(8, { batch, onSettled: (outcome) => story.push(`r8 ${outcome}`) });
  const third = heldCall(9, { batch, onSettled: (outcome) => story.push(`r9 ${outcome}`) });
  pass(LIMIT_MS - 1);
  third.call.end(1);
  batch.remove(third);
  story.length = 0;
  pass(1);
  const told = [...TIMED_OUT, 'log r8 SERVE_INFERENCE_TIMEOUT', 'r8 SERVE_INFERENCE_TIMEOUT'];
  assert.deepEqual(story, told);
  assert.deepEqual(channel.sent, [CANCEL, { ...CANCEL, id: 8 }]);
  batch.remove(batch.calls[0] as HeldCall);
  assert.ok(held.includes(batch));
  pass(ABORT_GRACE_MS);
  assert.deepEqual(story, [...told, 'run timeout']);
});

test('a worker that ends the call within the grace lives on', (t) => {
  const { take, pass, story, end } = setUp(t);
  const held = take(7);
  pass(LIMIT_MS);
  end(held);
  pass(10 * LIMIT_MS);
  assert.deepEqual(story, TIMED_OUT);
});

test('a call whose client has left is only cancelled in the worker', (t) => {
  const { take, pass, story, channel } = setUp(t);
  take(7).call.end(0);
  story.length = 0;
  pass(LIMIT_MS);
  assert.deepEqual(story, []);
  assert.deepEqual(channel.sent, [CANCEL]);
});

test('a call whose client kept it waiting while others waited ends as if the client had left: no abort by the clock, no kill', (t) => {
  const { take, pass, story, channel } = setUp(t);
  const held = take(7);
  held.countUnread(STREAM_WINDOW_BYTES);
  held.batch.othersWait = true;
  pass(LIMIT_MS);
  assert.deepEqual(story, ['r7 SERVE_SLOW_READER', 'abandon r7']);
  held.onClientLeft(); // `abandon` does this: its run time counts from here
  pass(LIMIT_MS - 1);
  assert.equal(story.length, 2);
  assert.deepEqual(channel.sent, []);
  pass(1 + ABORT_GRACE_MS);
  assert.deepEqual(story.slice(2), ['run timeout'], 'a handler that does not obey hangs');
});

test('a call that never began has the time to begin in addition; then its worker is killed, and the call is not failed', (t) => {
  const { held, pass, story, channel, timeout } = setUp(t);
  const { batch } = sentCall(7, { batch: timeout.newBatch() });
  held.push(batch);
  timeout.start(batch);
  pass(MIN_BEGIN_MS - 1);
  assert.deepEqual(story, []);
  pass(1);
  assert.deepEqual(story, ['it did not begin its call']);
  assert.deepEqual(channel.sent, []);
});

test('the time to begin is at least 5 s, and no longer than a longer limit', (t) => {
  const { timeout } = setUp(t);
  const graceMs = (): number => 0 - timeout.newBatch().usedMs(0);
  assert.equal(graceMs(), 4000);
  timeout.limit = limitOf(5000);
  assert.equal(graceMs(), 0);
  timeout.limit = limitOf(300_000);
  assert.equal(graceMs(), 0);
});

test('a new limit applies to later calls', (t) => {
  const { take, pass, story, timeout } = setUp(t);
  timeout.limit = limitOf(2 * LIMIT_MS);
  take(7);
  pass(2 * LIMIT_MS - 1);
  assert.deepEqual(story, []);
  pass(1);
  assert.deepEqual(story, TIMED_OUT);
});

test('once closed, neither the limit nor the grace fires', (t) => {
  const { take, pass, story, timeout } = setUp(t);
  take(7);
  pass(LIMIT_MS);
  timeout.close();
  pass(10 * LIMIT_MS);
  assert.deepEqual(story, TIMED_OUT);
});

const lateOf = (id: number): string[] => [
  `log r${id} SERVE_INFERENCE_TIMEOUT`,
  `r${id} SERVE_INFERENCE_TIMEOUT`,
];

test('each call has the whole limit, although there is only one timer', (t) => {
  const { take, end, pass, story } = setUp(t);
  for (let id = 1; id < 10; id += 1) {
    const held = take(id);
    pass(LIMIT_MS * 0.7);
    end(held);
  }
  take(7);
  pass(LIMIT_MS - 1);
  assert.deepEqual(story, []);
  pass(1);
  assert.deepEqual(story, TIMED_OUT);
});

test('of calls that run at the same time, each times out at its own limit', (t) => {
  const { take, pass, story, state } = setUp(t);
  state.places = 3;
  for (const id of [1, 2, 3]) {
    take(id);
    pass(100);
  }
  pass(LIMIT_MS - 301);
  for (const count of [0, 1, 2, 3]) {
    assert.deepEqual(story, [1, 2, 3].slice(0, count).flatMap(lateOf));
    pass(count === 0 ? 1 : 100);
  }
});

test('a worker without a running call has no timeout, and its next call is watched again', (t) => {
  const { take, end, pass, story } = setUp(t);
  const first = take(1);
  pass(100);
  end(first);
  pass(10 * LIMIT_MS);
  take(7);
  pass(LIMIT_MS - 1);
  assert.deepEqual(story, []);
  pass(1);
  assert.deepEqual(story, TIMED_OUT);
});

/** A call that waits for its client after 100 ms, and holds up others for the next 500 ms. */
function holdUp(t: TestContext): Omit<ReturnType<typeof setUp>, 'held'> & { held: HeldCall } {
  const bench = setUp(t);
  const held = bench.take(7);
  held.batch.othersWait = true;
  bench.pass(100);
  held.countUnread(STREAM_WINDOW_BYTES);
  bench.pass(500);
  held.batch.othersWait = false;
  return { ...bench, held };
}

test('time in which a call waits for its client counts only while other calls wait, in all', (t) => {
  const { held, pass, story } = holdUp(t);
  pass(3 * LIMIT_MS);
  assert.deepEqual(story, [], 'no other call waits');
  held.batch.othersWait = true;
  pass(399);
  assert.deepEqual(story, []);
  pass(1);
  assert.deepEqual(story, ['r7 SERVE_SLOW_READER', 'abandon r7']);
});

test('a call that works again has what is left of its run time, however long it waited before', (t) => {
  const { held, pass, story } = holdUp(t);
  pass(3 * LIMIT_MS);
  held.countUnread(-1);
  pass(899);
  assert.deepEqual(story, []);
  pass(1);
  assert.deepEqual(story, TIMED_OUT);
});

/** Call 1 goes on after its grace, 2 obeys its abort, 3 has half of its time left: the worker is pinged now. */
function outlast(t: TestContext) {
  const bench = setUp(t);
  bench.state.places = 3;
  bench.take(1);
  bench.pass(900);
  const obeys = bench.take(2);
  bench.pass(600);
  const other = bench.take(3);
  bench.pass(400);
  bench.end(obeys);
  bench.pass(100);
  return { ...bench, other };
}

const OUTLASTED = [...lateOf(1), ...lateOf(2), 'no more calls'];

test('beside others, a call that goes on after its grace costs the worker its calls; it is killed when they have ended', (t) => {
  const { timeout, story, channel, pass, other, end } = outlast(t);
  assert.deepEqual(story, OUTLASTED);
  assert.deepEqual(channel.sent.at(-1), { type: 'ping', ref: 1 });
  timeout.onPong(1);
  pass(LIMIT_MS / 2 - 1);
  assert.deepEqual(story, OUTLASTED);
  end(other);
  assert.deepEqual(story, [...OUTLASTED, 'run timeout']);
});

test('the others have their own limits and graces; then nothing but stuck calls is left, and the worker is killed', (t) => {
  const { timeout, story, pass } = outlast(t);
  timeout.onPong(1);
  pass(LIMIT_MS / 2 + ABORT_GRACE_MS - 1);
  assert.deepEqual(story, [...OUTLASTED, ...lateOf(3)]);
  pass(1);
  assert.deepEqual(story, [...OUTLASTED, ...lateOf(3), 'run timeout']);
});

test('an event loop that answers no ping is killed after 500 ms; a call whose time is over by then gets the error of that', (t) => {
  const { story, pass } = outlast(t);
  pass(PONG_MS - 1);
  assert.deepEqual(story, OUTLASTED);
  pass(1);
  assert.deepEqual(story.filter((line) => !line.startsWith('log')).slice(-2), [
    'r3 SERVE_INFERENCE_TIMEOUT',
    'run timeout',
  ]);
});
