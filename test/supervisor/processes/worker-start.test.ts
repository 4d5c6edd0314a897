import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { PROTOCOL_VERSION, type Message, type StartSpec } from '../../../protocol/wire/messages.js';
import { Timers } from '../../../supervisor/machine/limit-timer.js';
import { CurrentState, type WorkerCore } from '../../../supervisor/processes/worker-lifecycle.js';
import type { Fatal } from '../../../supervisor/processes/worker-death.js';
import { WorkerStart } from '../../../supervisor/processes/worker-start.js';
import type { WorkerStop } from '../../../supervisor/processes/worker-stop.js';

test('the start message has the time that is left of the init timeout after hello', (t) => {
  let nowMs = 500;
  t.mock.method(performance, 'now', () => nowMs);
  const sent: Message[] = [];
  const core = {
    state: {
      enter: () => {},
      get uptimeMs() {
        return nowMs - 500;
      },
    },
    channel: { send: (message: Message) => sent.push(message), flush: () => {} },
    timers: { start: () => ({}) },
  } as unknown as WorkerCore;
  const limit = { ms: 10_000, name: '--init-timeout' };
  const spec = { app: '/app.py' } as StartSpec;
  const start = new WorkerStart(core, {} as WorkerStop, spec, limit, () => {});
  nowMs += 3000;
  start.onHello(PROTOCOL_VERSION);
  nowMs += 9000;
  start.onHello(PROTOCOL_VERSION);
  assert.deepEqual(
    sent,
    [7000, 0].map((readyWithinMs) => ({ type: 'start', spec: { app: '/app.py', readyWithinMs } })),
  );
});

describe('a warm-up', () => {
  /** A worker that has begun its warm-up, with this init timeout; what it is told, and why it is killed. */
  function warming(t: TestContext, initTimeoutMs: number) {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const told: string[] = [];
    const notes = { noteFatal: ({ message }: Fatal) => told.push(message) };
    const state = new CurrentState(() => {});
    for (const event of ['hello', 'loaded'] as const) state.enter(event);
    const core = { state, notes, timers: new Timers() } as unknown as WorkerCore;
    const stop = { kill: (cause: string) => told.push(cause) } as unknown as WorkerStop;
    const limit = { ms: initTimeoutMs, name: '--init-timeout' };
    const start = new WorkerStart(core, stop, {} as StartSpec, limit, (advice) =>
      told.push(`slow: ${advice}`),
    );
    start.onWarmUp('Put an input there.');
    return { start, told, pass: (ms: number) => t.mock.timers.tick(ms) };
  }

  for (const [initTimeoutMs, limitMs, shown] of [
    [600_000, 30_000, '30 s'],
    [40_000, 10_000, '10 s'],
  ] as const)
    test(`of an init timeout of ${initTimeoutMs} ms is told of after 5 s, and ends after ${shown}`, (t) => {
      t.mock.method(performance, 'now', () => 0); // timers are never late
      const { start, told, pass } = warming(t, initTimeoutMs);
      pass(4999);
      assert.deepEqual(told, []);
      pass(1);
      assert.deepEqual(told, ['slow: Put an input there.']);
      pass(limitMs - 5000);
      assert.deepEqual(told.slice(1), [
        `the warm-up has taken more than ${shown}, so the next start skips it. Put an input there.`,
        'warm-up timeout',
      ]);
      assert.equal(start.isWarming, true, 'it ended in it');
    });

  test('that ends in time is nothing to tell', (t) => {
    const { start, told, pass } = warming(t, 600_000);
    start.onReady();
    pass(700_000);
    assert.deepEqual(told, []);
    assert.equal(start.isWarming, false);
  });
});
