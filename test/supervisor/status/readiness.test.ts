/** The answer of `/readyz` for every combination of models. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ModelPresence } from '../../../supervisor/models/model-health.js';
import type { ServedState } from '../../../supervisor/models/model-status.js';
import { modelReadiness, serverReadiness } from '../../../supervisor/status/readiness.js';

/** A model that wants a worker. `isComingUp`: it was not ready yet and has not given up. */
function model(label: string, state: ServedState, isComingUp = false): ModelPresence {
  const problem = state === 'failing' ? 'no Redis' : null;
  return { label, state, problem, isComingUp };
}

const READY = model('ready', 'ready');
const LATCHED = model('latched', 'unhealthy');
const LOST = model('lost', 'unhealthy');
const FAILING = model('failing', 'failing');
const STARTING = model('starting', 'starting', true);
const TRYING = model('trying', 'unhealthy', true);
const LATE = model('late', 'starting');
const UNLOADED = model('unloaded', 'unloaded');
const DRAINING = model('draining', 'draining');
const IDLE = model('idle', 'idle');

const ROWS: readonly (readonly [what: string, models: ModelPresence[], ready: boolean, body: object])[] = [
  ['one model that is ready', [READY], true, { state: 'ready' }],
  ['one model that starts', [STARTING], false, { state: 'starting' }],
  ['one model that dies while it starts', [TRYING], false, { state: 'unhealthy' }],
  ['one model that has given up', [LATCHED], false, { state: 'unhealthy' }],
  ['one model that is failing', [FAILING], false, { state: 'failing', reason: 'no Redis' }],
  [
    'a model that is failing beside one that starts',
    [FAILING, LATE],
    false,
    { state: 'failing', reason: 'no Redis', notReady: { failing: 'failing', late: 'starting' } },
  ],
  [
    'a model that is failing beside one that is ready',
    [FAILING, READY],
    true,
    { state: 'ready', notReady: { failing: 'failing' } },
  ],
  ['one model that wants no workers', [UNLOADED], false, { state: 'unloaded' }],
  ['one model that is idle', [IDLE], true, { state: 'idle' }],
  ['two that are idle', [IDLE, model('b', 'idle')], true, { state: 'idle', idle: ['idle', 'b'] }],
  ['one ready, one idle', [READY, IDLE], true, { state: 'ready', idle: ['idle'] }],
  [
    'one idle, one that has given up',
    [IDLE, LATCHED],
    true,
    { state: 'idle', notReady: { latched: 'unhealthy' }, idle: ['idle'] },
  ],
  [
    'one idle, one that still starts',
    [IDLE, STARTING],
    false,
    { state: 'starting', notReady: { starting: 'starting' }, idle: ['idle'] },
  ],
  ['no model at all', [], false, { state: 'unloaded' }],
  ['two that are ready', [READY, model('b', 'ready')], true, { state: 'ready' }],
  [
    'one ready, one that still starts',
    [READY, STARTING],
    false,
    { state: 'starting', notReady: { starting: 'starting' } },
  ],
  [
    'one ready, one that dies while it starts',
    [READY, TRYING],
    false,
    { state: 'starting', notReady: { trying: 'unhealthy' } },
  ],
  [
    'one ready, one that has given up',
    [READY, LATCHED],
    true,
    { state: 'ready', notReady: { latched: 'unhealthy' } },
  ],
  [
    'one ready, one that has lost its workers',
    [READY, LOST],
    true,
    { state: 'ready', notReady: { lost: 'unhealthy' } },
  ],
  [
    'one ready, one that was registered at run time and starts',
    [READY, LATE],
    true,
    { state: 'ready', notReady: { late: 'starting' } },
  ],
  [
    'one ready, one that wants no workers',
    [READY, UNLOADED],
    true,
    { state: 'ready', notReady: { unloaded: 'unloaded' } },
  ],
  [
    'one that has given up, one that starts',
    [LATCHED, STARTING],
    false,
    { state: 'unhealthy', notReady: { latched: 'unhealthy', starting: 'starting' } },
  ],
  [
    'one that wants no workers, one that starts',
    [UNLOADED, STARTING],
    false,
    { state: 'starting', notReady: { unloaded: 'unloaded', starting: 'starting' } },
  ],
];

describe('/readyz', () => {
  for (const [what, models, ready, body] of ROWS) {
    test(`with ${what} is ${ready ? 200 : 503} ${JSON.stringify(body)}`, () => {
      const readiness = serverReadiness(models, false, false);
      assert.deepEqual([readiness.ready, readiness.body], [ready, body]);
    });
  }

  test('stays 200 while the store of jobs fails, and names it', () => {
    const { ready, body } = serverReadiness([READY], false, true);
    assert.deepEqual([ready, body], [true, { state: 'ready', jobs: 'unavailable' }]);
  });

  test('is 503 from the beginning of a drain, whatever the models are', () => {
    for (const models of [[], [READY], [DRAINING], [READY, LATCHED]]) {
      const { ready, state } = serverReadiness(models, true, false);
      assert.deepEqual([ready, state], [false, 'draining']);
    }
  });
});

test('/readyz/{model} is 200 only while that model has a ready worker, or is idle', () => {
  const of = (presence: ModelPresence): unknown[] => {
    const { ready, body } = modelReadiness(presence);
    return [ready, body];
  };
  assert.deepEqual(of(READY), [true, { state: 'ready', model: 'ready' }]);
  assert.deepEqual(of(IDLE), [true, { state: 'idle', model: 'idle' }]);
  assert.deepEqual(of(LATCHED), [false, { state: 'unhealthy', model: 'latched' }]);
  assert.deepEqual(of(LATE), [false, { state: 'starting', model: 'late' }]);
  assert.deepEqual(of(UNLOADED), [false, { state: 'unloaded', model: 'unloaded' }]);
  assert.deepEqual(of(DRAINING), [false, { state: 'draining', model: 'draining' }]);
});
