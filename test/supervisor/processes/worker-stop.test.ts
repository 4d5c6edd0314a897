import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Timers } from '../../../supervisor/machine/limit-timer.js';
import {
  CurrentState,
  type WorkerCore,
  type LifeEvent,
} from '../../../supervisor/processes/worker-lifecycle.js';
import { WorkerStop } from '../../../supervisor/processes/worker-stop.js';

/** A ready worker with a fake process, and mocked time. */
function setUp(t: TestContext, events: readonly LifeEvent[] = ['hello', 'loaded', 'ready']) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => 0); // timers are never late
  const story: string[] = [];
  const frozen = { is: false };
  const state = new CurrentState(() => {});
  for (const event of events) state.enter(event);
  const timers = new Timers();
  const core = {
    process: { kill: (signal: string) => story.push(signal), isFrozen: () => frozen.is },
    channel: { send: ({ type }: { type: string }) => story.push(type), flush: () => {} },
    state,
    timers,
    notes: { noteFatal: () => {}, noteKill: () => {} },
  } as unknown as WorkerCore;
  return {
    stop: new WorkerStop(core),
    state,
    timers,
    frozen,
    pass: (ms: number) => t.mock.timers.tick(ms),
    /** Returns the events since the last call. */
    told: (): string[] => story.splice(0),
  };
}

test('a worker that is retired ends its calls, then is asked to stop, gets SIGTERM and SIGKILL', (t) => {
  const { stop, pass, told } = setUp(t);
  assert.equal(stop.retire({ finishMs: 10_000, graceMs: 4000 }), true);
  for (const [ms, follows] of [
    [9999, []],
    [1, ['stop']],
    [3999, []],
    [1, ['SIGTERM']],
    [1000, ['SIGKILL']],
  ] as const) {
    pass(ms);
    assert.deepEqual(told(), follows);
  }
});

test('a worker that finishes its calls can get a shorter limit, not a longer one', (t) => {
  const { stop, pass, told } = setUp(t);
  stop.retire({ finishMs: 60_000, graceMs: 4000 });
  assert.equal(stop.retire({ finishMs: 5000, graceMs: 1000 }), false);
  assert.equal(stop.retire({ finishMs: 90_000, graceMs: 9000 }), false);
  pass(4999);
  assert.deepEqual(told(), []);
  pass(1);
  assert.deepEqual(told(), ['stop']);
  pass(1000);
  assert.deepEqual(told(), ['SIGTERM']);
  pass(1000);
  assert.deepEqual(told(), ['SIGKILL']);
  pass(1e6);
  assert.deepEqual(told(), [], 'no other timer has stayed');
});

test('a worker that was asked to stop is not asked twice, and can get a shorter limit', (t) => {
  const { stop, pass, told } = setUp(t);
  stop.stop(20_000);
  stop.stop(60_000);
  assert.equal(stop.retire({ finishMs: 1000, graceMs: 500 }), false);
  assert.deepEqual(told(), ['stop']);
  pass(1500);
  assert.deepEqual(told(), ['SIGTERM']);
  pass(1000);
  assert.deepEqual(told(), ['SIGKILL']);
  pass(1e6);
  assert.deepEqual(told(), []);
});

test('a worker that is frozen, or freezes while it stops, is killed a second later at most', (t) => {
  const { stop, pass, told, frozen } = setUp(t);
  stop.stop(20_000);
  pass(1000);
  assert.deepEqual(told(), ['stop']);
  frozen.is = true;
  pass(1000);
  assert.deepEqual(told(), ['SIGKILL']);
});

test('a worker that reports a fatal error has one second, whatever is asked of it then', (t) => {
  const { stop, pass, told } = setUp(t);
  stop.onFatal({
    type: 'fatal',
    code: 'SERVE_INTERNAL',
    message: '',
    detail: '',
    permanent: false,
    transient: false,
  });
  stop.retire({ finishMs: 0, graceMs: 0 });
  pass(999);
  assert.deepEqual(told(), []);
  pass(1);
  assert.deepEqual(told(), ['SIGKILL']);
});

test('a worker that was never ready gets SIGTERM together with the stop message', (t) => {
  const { stop, pass, told } = setUp(t, ['hello', 'loaded']);
  stop.retire({ finishMs: 10_000, graceMs: 4000 });
  stop.onFinished();
  pass(1);
  assert.deepEqual(told(), ['stop', 'SIGTERM']);
});
