import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { healthOf, readyInMs } from '../../../supervisor/models/slot-summary.js';
import type { SlotState } from '../../../supervisor/slots/slot-lifecycle.js';

const NOW_MS = 1000;
const worker = {} as (SlotState & { name: 'live' })['worker'];
const SLOTS = {
  waiting: { name: 'waiting' },
  live: { name: 'live', worker },
  renewing: { name: 'renewing', worker, next: null },
  replacing: { name: 'replacing', worker },
  backoff: { name: 'backoff', untilMs: NOW_MS + 700 },
  latched: { name: 'latched', error: new ServeError('SERVE_CRASH_LOOP'), neverFits: false },
  closing: { name: 'closing', worker },
  closed: { name: 'closed' },
} as const satisfies Record<SlotState['name'], SlotState>;

for (const [names, lastInitMs, expected] of [
  [['waiting'], null, 1000],
  [['live'], 50, 50],
  [['renewing', 'latched'], 50, 50],
  [['replacing', 'backoff'], 50, 50],
  [['backoff', 'latched'], 50, 750],
  [['latched', 'closing', 'closed'], 50, null],
] as const) {
  const text = expected === null ? 'never' : `in ${expected} ms`;
  test(`slots that are ${names.join(', ')}, last init ${lastInitMs} ms: a worker is expected ${text}`, () => {
    const slots = names.map((name) => ({ state: SLOTS[name] }));
    assert.equal(readyInMs(slots, lastInitMs, NOW_MS), expected);
  });
}

const QUIET = {
  isDraining: false,
  readyWorkers: 0,
  standstill: null,
  isIdle: false,
  hasServed: false,
  hasLost: false,
};
for (const [facts, health] of [
  [{}, 'starting'],
  [{ hasLost: true }, 'unhealthy'],
  [{ hasServed: true }, 'unhealthy'],
  [{ standstill: 'latched' }, 'unhealthy'],
  [{ standstill: 'failing', hasServed: true, hasLost: true }, 'failing'],
  [{ standstill: 'failing', isDraining: true }, 'draining'],
  [{ readyWorkers: 1, hasServed: true, hasLost: true }, 'ready'],
  [{ readyWorkers: 1, isDraining: true }, 'draining'],
  [{ isIdle: true }, 'idle'],
  [{ isIdle: true, hasServed: true, hasLost: true }, 'idle'],
  [{ isIdle: true, standstill: 'latched' }, 'unhealthy'],
  [{ isIdle: true, isDraining: true }, 'draining'],
] as const) {
  test(`a model with ${JSON.stringify(facts)} is ${health}`, () => {
    assert.equal(healthOf({ ...QUIET, ...facts }), health);
  });
}
