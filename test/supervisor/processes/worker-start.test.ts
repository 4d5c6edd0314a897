import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTOCOL_VERSION, type Message, type StartSpec } from '../../../protocol/wire/messages.js';
import type { WorkerCore } from '../../../supervisor/processes/worker-core.js';
import { WorkerStart, type WorkerStartListener } from '../../../supervisor/processes/worker-start.js';
import type { WorkerStop } from '../../../supervisor/processes/worker-stop.js';

test('the start message has the time that is left of the init timeout after hello', (t) => {
  let nowMs = 500;
  t.mock.method(performance, 'now', () => nowMs);
  const sent: Message[] = [];
  const core = {
    state: { enter: () => {} },
    channel: { send: (message: Message) => sent.push(message), flush: () => {} },
    timers: { start: () => ({}) },
  } as unknown as WorkerCore;
  const limit = { ms: 10_000, name: '--init-timeout' };
  const spec = { app: '/app.py' } as StartSpec;
  const start = new WorkerStart(core, {} as WorkerStop, spec, limit, {} as WorkerStartListener);
  nowMs += 3000;
  start.onHello(PROTOCOL_VERSION);
  nowMs += 9000;
  start.onHello(PROTOCOL_VERSION);
  assert.deepEqual(
    sent,
    [7000, 0].map((readyWithinMs) => ({ type: 'start', spec: { app: '/app.py', readyWithinMs } })),
  );
});
