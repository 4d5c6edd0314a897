/** The page's alerts: which come first, and what is no problem. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alertsOf, serverState, type Watched } from '../../../supervisor/page/watch/alerts.js';
import { loadingOf } from '../../../supervisor/page/watch/loading.js';
import { modelState } from '../../../supervisor/page/watch/models.js';
import type { LiveModel, LiveServer } from '../../../supervisor/status/live-types.js';
import { liveDeath, liveModel, liveServer, liveWorker, START } from '../../helpers/live-data.js';

const NOW = START + 20_000;

const watched = (models: readonly LiveModel[], changes: Partial<Watched> = {}): Watched => ({
  at: NOW,
  server: liveServer(),
  models,
  deaths: [],
  ...changes,
});

const latched = liveModel({
  key: 2,
  name: 'broken',
  state: 'unhealthy',
  isLatched: true,
  workers: [
    liveWorker({
      state: 'latched',
      pid: null,
      lastDeath: 9,
      failure: { code: 'SERVE_INIT_FAILED', message: 'no such file: weights.bin' },
    }),
  ],
});

test('a model that has given up comes first, with its reason and what to do', () => {
  const death = liveDeath({ id: 3, at: NOW - 12_000, hint: '' });
  const alerts = alertsOf(watched([liveModel(), latched], { deaths: [death] }));
  assert.deepEqual(
    alerts.map(({ level, title, text }) => [level, title, text]),
    [
      ['bad', 'broken has given up: no worker can start', 'SERVE_INIT_FAILED: no such file: weights.bin'],
      [
        'warn',
        'Worker 0 of digits died: signal SIGSEGV',
        '12 s ago. It was running the call call-1, which got SERVE_WORKER_LOST.',
      ],
    ],
  );
  assert.match(alerts[0]?.todo ?? '', /correct it, then start the server again/);
});

test('a model that is failing says when it is tried again, and that nobody need start the server again', () => {
  const failing = liveWorker({
    state: 'backoff',
    pid: null,
    retryInMs: 42_000,
    failure: { code: 'SERVE_INIT_FAILED', message: 'no route to redis' },
  });
  const [alert, ...others] = alertsOf(watched([liveModel({ state: 'failing', workers: [failing] })]));
  assert.deepEqual(
    [alert?.level, alert?.title, alert?.text, others],
    [
      'bad',
      'digits cannot start: its workers failed too often in a row',
      'SERVE_INIT_FAILED: no route to redis',
      [],
    ],
  );
  assert.match(alert?.todo ?? '', /^The next start is in 42 s\. The server goes on trying/);
  const [half] = alertsOf(watched([liveModel({ workers: [liveWorker(), failing] })]));
  assert.deepEqual([half?.level, half?.title], ['warn', 'digits cannot start 1 worker of 2']);
});

test('a call that ran too long got the error of that', () => {
  const death = liveDeath({
    at: NOW,
    how: 'killed by the server: run timeout',
    cause: 'run timeout',
    hint: '',
  });
  const [alert] = alertsOf(watched([liveModel()], { deaths: [death] }));
  assert.match(alert?.text ?? '', /the call call-1, which got SERVE_INFERENCE_TIMEOUT\.$/);
});

test('without the words of the app the code is left, and the last words are opened', () => {
  const [worker] = latched.workers;
  const silent = {
    ...latched,
    workers: [{ ...worker!, failure: { code: 'SERVE_CRASH_LOOP', message: '' } }],
  };
  const [alert] = alertsOf(watched([silent], { deaths: [liveDeath({ id: 9, key: 2 })] }));
  assert.deepEqual([alert?.text, alert?.opensDeath, alert?.death?.id], ['SERVE_CRASH_LOOP', true, 9]);
});

test('a model without a ready worker says who died of what, and when the next one starts', () => {
  const model = liveModel({
    state: 'unhealthy',
    workers: [liveWorker({ state: 'backoff', pid: null, retryInMs: 3_400, lastDeath: 1 })],
  });
  const death = liveDeath({ at: NOW - 2_000, during: 'start', how: 'exit code 1' });
  const [alert, ...others] = alertsOf(watched([model], { deaths: [death] }));
  assert.deepEqual(others, []);
  assert.deepEqual(
    [alert?.level, alert?.title, alert?.text],
    [
      'bad',
      'digits has no ready worker',
      'Worker 0 died 2 s ago: exit code 1. Calls wait meanwhile. The next start is in 3 s.',
    ],
  );
});

for (const [title, model, word] of [
  [
    'sleeps until a call needs a worker',
    liveModel({ state: 'unloaded', wantedWorkers: 0, minWorkers: 0, maxWorkers: 2, workers: [] }),
    'asleep',
  ],
  [
    'was scaled to no workers',
    liveModel({ state: 'unloaded', wantedWorkers: 0, minWorkers: 0, maxWorkers: 0, workers: [] }),
    'no workers',
  ],
  ['is being unregistered', liveModel({ state: 'unloading', workers: [] }), 'unloading'],
  [
    'is being loaded',
    liveModel({ state: 'starting', workers: [liveWorker({ state: 'loading' })] }),
    'starting',
  ],
] as const)
  test(`a model that ${title} is no problem: ${word}`, () => {
    assert.deepEqual(alertsOf(watched([model])), []);
    assert.equal(modelState(model)[1], word);
  });

test('a death is shown for five minutes', () => {
  const death = liveDeath({ at: NOW - 301_000 });
  assert.deepEqual(alertsOf(watched([liveModel()], { deaths: [death] })), []);
});

for (const [title, changes, expected] of [
  [
    'a queue that is nearly full',
    { queue: { waiting: 900, arriving: 0, bytes: 0, maxCalls: 1024, maxBytes: 1 } },
    'The queue of digits is nearly full',
  ],
  ['a frozen worker', { workers: [liveWorker({ state: 'frozen' })] }, 'Worker 0 of digits is frozen'],
] as const)
  test(`${title} is a warning`, () => {
    const [alert] = alertsOf(watched([liveModel(changes)]));
    assert.deepEqual([alert?.level, alert?.title], ['warn', expected]);
  });

test('a server that ends says so', () => {
  const [alert] = alertsOf(watched([], { server: liveServer({ state: 'draining' }) }));
  assert.equal(alert?.title, 'The server is ending');
});

test('while a model is loading, the page says what it does and for how long', () => {
  const workers = [
    liveWorker({ index: 1, state: 'loading', since: NOW - 100, startedAt: NOW - 300 }),
    liveWorker({ state: 'initializing', since: NOW - 12_000, startedAt: NOW - 15_000 }),
  ];
  const [loading] = loadingOf([liveModel({ state: 'starting', workers }), latched], NOW);
  assert.deepEqual(
    [loading?.worker.index, loading?.step, loading?.stepMs, loading?.totalMs, loading?.others],
    [0, 'runs init and the example', 12_000, 15_000, 1],
  );
});

test('a worker that waits says what for', () => {
  const waitsFor = 'a place among 2 starts (--spawn-concurrency): big';
  const waiting = liveWorker({ state: 'waiting', pid: null, startedAt: null, waitsFor });
  const [alert] = alertsOf(watched([liveModel({ state: 'unhealthy', workers: [waiting] })]));
  assert.equal(alert?.text, `Calls wait meanwhile. The next one waits for ${waitsFor}.`);
  const [loading] = loadingOf([liveModel({ state: 'starting', workers: [waiting] })], NOW);
  assert.equal(loading?.step, `waits for ${waitsFor}`);
});

test('a model at half strength is a warning, one that is being scaled up is none', () => {
  const dying = liveWorker({ index: 1, state: 'backoff', pid: null, retryInMs: 4000, lastDeath: 1 });
  const half = liveModel({ wantedWorkers: 2, workers: [liveWorker(), dying] });
  const deaths = [liveDeath({ at: NOW - 6 * 60_000, how: 'exit code 1', during: 'start' })];
  const [alert, ...others] = alertsOf(watched([half], { deaths }));
  assert.deepEqual(
    [alert?.level, alert?.title, alert?.text, others.length],
    [
      'warn',
      'digits has 1 of 2 workers',
      'Calls wait longer meanwhile. Worker 1 died: exit code 1. The next start is in 4 s.',
      0,
    ],
  );
  const growing = liveModel({
    wantedWorkers: 2,
    workers: [liveWorker(), liveWorker({ index: 1, state: 'loading' })],
  });
  assert.deepEqual(alertsOf(watched([growing])), []);
});

for (const [title, change, models, expected] of [
  ['well', {}, [liveModel()], ['good', 'ready']],
  ['with a model that has given up', {}, [liveModel(), latched], ['bad', '1 problem']],
  ['with nothing else', { state: 'unhealthy' }, [latched], ['bad', 'not ready, 1 problem']],
  [
    'starting while one model serves',
    { state: 'starting' },
    [liveModel(), liveModel({ key: 3, name: 'late', state: 'starting', workers: [] })],
    ['good', 'ready, 1 loading'],
  ],
  ['starting', { state: 'starting' }, [liveModel({ state: 'starting' })], ['busy', 'starting']],
] as [string, Partial<LiveServer>, LiveModel[], string[]][])
  test(`the header of a server that is ${title}`, () => {
    assert.deepEqual(serverState(watched(models, { server: liveServer(change) })), expected);
  });
