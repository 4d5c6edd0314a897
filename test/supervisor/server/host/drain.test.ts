import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { retireLimits, stopReserveMs } from '../../../../supervisor/processes/worker-stop.js';
import type { ManagedModel } from '../../../../supervisor/models/model.js';
import { drain } from '../../../../supervisor/server/host/model-host.js';
import { deferred, nextTurn } from '../../../protocol/streams.js';

const TIMEOUT_MS = 1000;
/** The time after this is reserved for the workers. */
const CUT_AT_MS = 800;

/** A model that is busy until the test sets `isQuiet`, and a fake clock. */
function setUp(t: TestContext, lagMs = 0) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 10_000;
  t.mock.method(performance, 'now', () => nowMs);
  const story: string[] = [];
  const closed = deferred();
  const model = {
    health: { announceDrain: () => story.push('announced') },
    refuseCalls: () => story.push('refused'),
    crew: { workers: { length: 3 } },
    hasShutdown: true,
    close: (graceMs: number) => story.push(`workers stop within ${graceMs}`),
    dispatcher: {
      isQuiet: false,
      queued: 2,
      arriving: 1,
      inFlight: 1,
      failQueued: ({ code }: { code: string }) => story.push(`queued: ${code}`),
      failInFlight: (begun: { code: string }, notBegun: { code: string }) =>
        story.push(`in flight: ${begun.code} ${notBegun.code}`),
    },
  };
  const end = drain({
    models: [model as unknown as ManagedModel],
    log: { info: (text: string) => story.push(text), error: (text: string) => story.push(text) },
    lagMs,
    timeoutMs: TIMEOUT_MS,
    webhooksOwed: 1,
    hint: 'hurry with x',
    workersClosed: closed.promise,
    onRefusing: () => story.push('refusing'),
    onCut: () => story.push('cut'),
  });
  return {
    model,
    end,
    workersGo: closed.resolve,
    pass: async (ms: number): Promise<void> => {
      for (let i = 0; i < ms; i += 5) {
        nowMs += 5;
        t.mock.timers.tick(5);
        await nextTurn();
      }
    },
    /** Removes and returns the events so far. */
    events: (): string[] => story.splice(0),
  };
}

const ANNOUNCED = [
  'announced',
  'draining (at most 1 s); waits for 1 call running, 3 calls waiting, 3 workers to stop, 1 webhook to send; hurry with x',
];

test('a drain refuses new calls at once, waits for accepted ones, then for the workers', async (t) => {
  const { model, end, workersGo, pass, events } = setUp(t);
  assert.deepEqual(events(), [...ANNOUNCED, 'refusing', 'refused']);
  await pass(500);
  assert.deepEqual(events(), []);
  model.dispatcher.isQuiet = true;
  await pass(10);
  assert.deepEqual(events(), ['workers stop within 0']); // 490 ms are left, the last second is SIGKILL's
  workersGo();
  assert.equal(await end, 'drained');
  assert.deepEqual(events(), ['queued: SERVE_SHUTTING_DOWN']);
});

test('calls are still accepted during the drain lag', async (t) => {
  const { pass, events } = setUp(t, 300);
  await pass(295);
  assert.deepEqual(events(), ANNOUNCED);
  await pass(5);
  assert.deepEqual(events(), ['refusing', 'refused']);
});

test('the drain lag is part of the drain timeout, however long it is', async (t) => {
  const { pass, events } = setUp(t, 60_000);
  await pass(TIMEOUT_MS - 5);
  assert.deepEqual(events(), ANNOUNCED);
  await pass(5);
  assert.deepEqual(events().slice(0, 2), ['refusing', 'refused']);
});

test('calls that have not ended when the time reserved for the workers begins are cut off', async (t) => {
  const { end, workersGo, pass, events } = setUp(t);
  events();
  await pass(CUT_AT_MS - 5);
  assert.deepEqual(events(), []);
  await pass(5);
  assert.deepEqual(events(), [
    'the drain timeout passed; calls are cut off: 1 running, 2 waiting',
    'cut',
    'queued: SERVE_SHUTTING_DOWN',
    'in flight: SERVE_WORKER_LOST SERVE_SHUTTING_DOWN',
    'workers stop within 0',
  ]);
  workersGo();
  assert.equal(await end, 'cut');
});

for (const [timeoutMs, finishMs, graceMs] of [
  [25_000, 20_000, 4000],
  [60_000, 55_000, 4000],
  [10_000, 8000, 1000],
  [1000, 800, 0],
  [0, 0, 0],
] as const) {
  test(`of ${timeoutMs} ms a worker has ${finishMs} for its calls, then ${graceMs} before SIGTERM`, () => {
    assert.deepEqual(retireLimits(timeoutMs), { finishMs, graceMs });
  });
}

for (const [timeoutMs, hasShutdown, reserveMs] of [
  [25_000, true, 5000],
  [25_000, false, 1000],
  [10_000, true, 2000],
  [3000, false, 600],
] as const) {
  test(`of ${timeoutMs} ms ${reserveMs} are kept for the workers of apps ${hasShutdown ? 'with' : 'without'} a shutdown`, () => {
    assert.equal(stopReserveMs(timeoutMs, hasShutdown), reserveMs);
  });
}
