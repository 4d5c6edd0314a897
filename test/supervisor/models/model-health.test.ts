/** The state of a model, as `/status` and `/readyz` show it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import type { Crew } from '../../../supervisor/models/crew.js';
import { ModelHealth } from '../../../supervisor/models/model-health.js';

interface Given {
  readonly takesCalls?: boolean;
  readonly isDraining?: boolean;
  readonly isReady?: boolean;
  /** Its only slot. */
  readonly stopped?: 'latched' | 'failing';
  readonly isIdle?: boolean;
  readonly hasServed?: boolean;
  readonly hasLost?: boolean;
}

function stateOf({ takesCalls = true, hasServed = false, isIdle = false, ...given }: Given): string {
  const failure = given.stopped === undefined ? null : new ServeError('SERVE_CRASH_LOOP');
  const lastDeath = given.hasLost === true ? {} : null;
  const slot = { failure, lastDeath, state: { name: given.stopped === 'latched' ? 'latched' : 'backoff' } };
  const ready = given.isReady === true ? [{}] : [];
  const crew = { ready, all: [slot], kept: [slot], want() {} } as unknown as Crew;
  const health = new ModelHealth(crew, () => null, false);
  health.want(1, takesCalls);
  if (hasServed) health.onReady(1);
  health.isIdle = isIdle;
  health.checkStandstill();
  if (given.isDraining === true) health.announceDrain();
  return health.state;
}

for (const [given, state] of [
  [{}, 'starting'],
  [{ hasLost: true }, 'unhealthy'],
  [{ hasServed: true }, 'unhealthy'],
  [{ stopped: 'latched' }, 'unhealthy'],
  [{ stopped: 'failing', hasServed: true, hasLost: true }, 'failing'],
  [{ stopped: 'failing', isDraining: true }, 'draining'],
  [{ isReady: true, hasServed: true, hasLost: true }, 'ready'],
  [{ isReady: true, isDraining: true }, 'draining'],
  [{ isIdle: true }, 'idle'],
  [{ isIdle: true, hasServed: true, hasLost: true }, 'idle'],
  [{ isIdle: true, stopped: 'latched' }, 'unhealthy'],
  [{ isIdle: true, isDraining: true }, 'draining'],
  [{ takesCalls: false }, 'unloaded'],
  [{ takesCalls: false, isReady: true }, 'unloaded'],
  [{ takesCalls: false, isDraining: true }, 'draining'],
] as const) {
  test(`a model with ${JSON.stringify(given)} is ${state}`, () => {
    assert.equal(stateOf(given), state);
  });
}
