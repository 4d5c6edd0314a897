/** When a model refuses calls for lack of workers, and what it says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { findStandstill, refusalOf } from '../../../supervisor/models/standstill.js';
import type { SlotState } from '../../../supervisor/slots/slot-lifecycle.js';

const ERROR = new ServeError('SERVE_INIT_FAILED', undefined, { detail: 'no route to redis at 10.0.0.7' });
const PAUSE: SlotState = { name: 'backoff', untilMs: 0 };
const SLOTS = {
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
    const standstill = findStandstill(names.map((name) => SLOTS[name]));
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
