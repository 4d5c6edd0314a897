/** The summary of a model's slots: when a worker comes, and what callers are told while none can. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { findStandstill, readyInMs, refusalOf } from '../../../supervisor/models/slot-summary.js';
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

/** When a model refuses calls for lack of workers, and what it says. */
const ERROR = new ServeError('SERVE_INIT_FAILED', undefined, { detail: 'no route to redis at 10.0.0.7' });
const PAUSE: SlotState = { name: 'backoff', untilMs: 0 };
const FAILED = {
  /** Its starts have failed less often than allowed, or one is ready. */
  well: { state: PAUSE, failure: null },
  failing: { state: PAUSE, failure: ERROR },
  latched: { state: { name: 'latched', error: ERROR, neverFits: false }, failure: ERROR },
} as const;

for (const [names, expected] of [
  [[], null],
  [['well'], null],
  [['failing'], 'failing'],
  [['latched'], 'latched'],
  [['failing', 'well'], null],
  [['latched', 'well'], null],
  [['failing', 'failing'], 'failing'],
  [['latched', 'failing'], 'failing'],
  [['latched', 'latched'], 'latched'],
] as const) {
  test(`slots that are ${names.join(', ') || 'not there'}: ${expected ?? 'calls are held'}`, () => {
    const standstill = findStandstill(names.map((name) => FAILED[name]));
    assert.equal(standstill?.state ?? null, expected);
  });
}

for (const [what, state, readyInMs, watch, retryAfterS, texts] of [
  [
    'latched',
    'latched',
    null,
    false,
    30,
    [/its init or its example fails/, /start the server again or send it SIGHUP/],
  ],
  ['latched, under --watch', 'latched', null, true, 30, [/correct it, then save it\.$/]],
  [
    'failing',
    'failing',
    41_200,
    false,
    42,
    [/its init or its example fails/, /goes on trying.* in 41\.2 s/, /SIGHUP/],
  ],
  ['failing, and about to start', 'failing', 20, false, 1, [/in 20 ms/]],
] as const) {
  test(`the error of calls to a model that is ${what}`, () => {
    const error = refusalOf({ state, error: ERROR }, readyInMs, watch);
    assert.deepEqual([error.code, error.retryAfterS], ['SERVE_NOT_READY', retryAfterS]);
    for (const text of texts) assert.match(error.message, text);
    assert.doesNotMatch(error.message, /redis/, "the app's words");
  });
}
