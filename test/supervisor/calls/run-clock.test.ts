import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { RunClock, runTimeMs, setHeldUp, type Clocked } from '../../../supervisor/calls/run-clock.js';

const LIMIT_MS = 1000;
const NEVER_PAUSED: Clocked = {
  beganAtMs: 100,
  graceMs: 0,
  pausedMs: 0,
  pausedSinceMs: null,
  heldUpMs: 0,
  heldUpSinceMs: null,
};

/** A clock of one worker with these running calls, and mocked time. */
function clockwork(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 10_000;
  t.mock.method(performance, 'now', () => nowMs);
  const state = { running: [] as Clocked[], timedOut: [] as Clocked[] };
  const clock = new RunClock<Clocked>(
    LIMIT_MS,
    () => state.running.filter((call) => !state.timedOut.includes(call)),
    (call) => state.timedOut.push(call),
  );
  return {
    state,
    begin: (): Clocked => {
      const call = { ...NEVER_PAUSED, beganAtMs: nowMs };
      state.running = [call];
      clock.start();
      return call;
    },
    /** A call that runs at the same time. */
    beginBeside: (): Clocked => {
      const call = { ...NEVER_PAUSED, beganAtMs: nowMs };
      state.running.push(call);
      clock.start();
      return call;
    },
    /** In small steps, as time passes. */
    pass: (ms: number): void => {
      for (let i = 0; i < ms; i += 1) {
        nowMs += 1;
        t.mock.timers.tick(1);
      }
    },
    now: () => nowMs,
    holdUp: (call: Clocked): void => {
      if (setHeldUp(call, true)) clock.hasten(call);
    },
    stop: () => clock.stop(),
  };
}

test('a call that runs longer than the limit times out, once', (t) => {
  const { begin, pass, state } = clockwork(t);
  const call = begin();
  pass(LIMIT_MS - 1);
  assert.deepEqual(state.timedOut, []);
  pass(1);
  assert.deepEqual(state.timedOut, [call]);
  pass(5 * LIMIT_MS);
  assert.equal(state.timedOut.length, 1);
});

test('each call has the whole limit, although there is only one timer', (t) => {
  const { begin, pass, state } = clockwork(t);
  for (let i = 0; i < 10; i += 1) {
    begin();
    pass(LIMIT_MS * 0.7);
  }
  assert.deepEqual(state.timedOut, []);
  pass(LIMIT_MS * 0.3);
  assert.equal(state.timedOut.length, 1);
});

test('of calls that run at the same time, each times out at its own limit, once', (t) => {
  const { begin, beginBeside, pass, state } = clockwork(t);
  const calls = [begin()];
  for (let i = 1; i < 4; i += 1) {
    pass(100);
    calls.push(beginBeside());
  }
  pass(LIMIT_MS - 301);
  for (const count of [0, 1, 2, 3, 4]) {
    assert.deepEqual(state.timedOut, calls.slice(0, count));
    pass(count === 0 ? 1 : 100);
  }
  pass(5 * LIMIT_MS);
  assert.equal(state.timedOut.length, 4);
});

test('a worker without a running call has no timeout, and its next call is watched again', (t) => {
  const { begin, pass, state } = clockwork(t);
  begin();
  pass(100);
  state.running = [];
  pass(10 * LIMIT_MS);
  assert.deepEqual(state.timedOut, []);
  const call = begin();
  pass(LIMIT_MS);
  assert.deepEqual(state.timedOut, [call]);
});

test('time in which a stream waits for its reader does not count', (t) => {
  const { begin, pass, state, now } = clockwork(t);
  const call = begin();
  pass(600);
  call.pausedSinceMs = now();
  pass(3 * LIMIT_MS);
  assert.deepEqual(state.timedOut, [], 'waiting');
  call.pausedMs += now() - call.pausedSinceMs;
  call.pausedSinceMs = null;
  pass(399);
  assert.deepEqual(state.timedOut, []);
  pass(1);
  assert.deepEqual(state.timedOut, [call]);
});

test('time in which a call waits for its client counts while other calls wait, in all, and from the moment when they do', (t) => {
  const { begin, pass, holdUp, state, now } = clockwork(t);
  const call = begin();
  pass(100);
  call.pausedSinceMs = now();
  holdUp(call);
  pass(500);
  setHeldUp(call, false);
  pass(3 * LIMIT_MS + 50);
  assert.deepEqual(state.timedOut, [], 'no other call waits');
  holdUp(call);
  pass(399);
  assert.deepEqual(state.timedOut, []);
  pass(1);
  assert.deepEqual(state.timedOut, [call]);
});

test('a call that works again has its whole run time, however long it waited before', (t) => {
  const { begin, pass, holdUp, state, now } = clockwork(t);
  const call = begin();
  call.pausedSinceMs = now();
  holdUp(call);
  pass(LIMIT_MS - 1);
  setHeldUp(call, false);
  call.pausedMs += now() - call.pausedSinceMs;
  call.pausedSinceMs = null;
  pass(LIMIT_MS - 1);
  assert.deepEqual(state.timedOut, []);
  pass(1);
  assert.deepEqual(state.timedOut, [call]);
});

test('a clock that was stopped does not fire', (t) => {
  const { begin, pass, stop, state } = clockwork(t);
  begin();
  stop();
  pass(5 * LIMIT_MS);
  assert.deepEqual(state.timedOut, []);
});

test('runTimeMs leaves out past and present pauses', () => {
  assert.equal(runTimeMs(NEVER_PAUSED, 350), 250);
  assert.equal(runTimeMs({ ...NEVER_PAUSED, pausedMs: 50 }, 350), 200);
  assert.equal(runTimeMs({ ...NEVER_PAUSED, pausedMs: 50, pausedSinceMs: 300 }, 350), 150);
});
