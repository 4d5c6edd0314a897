/** The result of `/ping`, by the workers that models have and should have. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pingStatus } from '../../../../../supervisor/http/dialects/mms/management-views.js';
import type { WorkerHandle } from '../../../../../supervisor/processes/worker-handle.js';

interface Row {
  readonly ready: number;
  readonly wanted?: number;
  readonly min?: number;
  readonly isIdle?: boolean;
  readonly isLeaving?: boolean;
}

const ROWS: readonly (readonly [status: string, why: string, models: readonly Row[]])[] = [
  ['Healthy', 'no models', []],
  ['Healthy', 'all wanted workers', [{ ready: 2, wanted: 2 }]],
  ['Healthy', 'the minimum number, while more are wanted', [{ ready: 1, wanted: 3, min: 1 }]],
  ['Healthy', 'no worker, and none wanted', [{ ready: 0, min: 0 }]],
  [
    'Healthy',
    'the only model without a worker is being unregistered',
    [{ ready: 0, min: 1, isLeaving: true }],
  ],
  ['Healthy', 'one idle model', [{ ready: 0, wanted: 0, min: 0, isIdle: true }]],
  ['Healthy', 'a start of an idle model', [{ ready: 0, wanted: 1, min: 0, isIdle: true }]],
  [
    'Partial Healthy',
    'an idle model beside one without its workers',
    [
      { ready: 0, min: 0, isIdle: true },
      { ready: 0, wanted: 1 },
    ],
  ],
  ['Partial Healthy', 'one of two', [{ ready: 1, wanted: 2 }]],
  [
    'Partial Healthy',
    'one model of two',
    [
      { ready: 0, wanted: 1 },
      { ready: 1, wanted: 1 },
    ],
  ],
  ['Unhealthy', 'no worker of one wanted', [{ ready: 0, wanted: 1 }]],
  ['Unhealthy', 'no worker of one wanted, with a minimum of 0', [{ ready: 0, wanted: 1, min: 0 }]],
  [
    'Unhealthy',
    'a model without its workers, beside one that needs none',
    [
      { ready: 0, wanted: 1 },
      { ready: 0, min: 0 },
    ],
  ],
];

for (const [status, why, models] of ROWS)
  test(`a server is ${status}: ${why}`, () => {
    const registered = models.map(({ ready, wanted = 0, min, isLeaving = false, isIdle = false }) => ({
      model: {
        crew: { ready: Array.from({ length: ready }, () => ({}) as WorkerHandle) },
        health: {
          takesCalls: wanted > 0 || isIdle,
          state: isIdle ? ('idle' as const) : ('starting' as const),
        },
      },
      bounds: { min: min ?? wanted, max: 9 },
      isLeaving,
    }));
    assert.equal(pingStatus(registered), status);
  });
