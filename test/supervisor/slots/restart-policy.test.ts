import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { WorkerDeath } from '../../../supervisor/processes/worker-death.js';
import {
  NEW_SLOT,
  afterDeath,
  startError,
  type Decision,
  type RestartRules,
} from '../../../supervisor/slots/restart-policy.js';
import { HEALTHY } from './slot-bench.js';

const AT_START: WorkerDeath = { ...HEALTHY, during: 'start', finishedCalls: 0 };
const IDLE_UNUSED: WorkerDeath = { ...HEALTHY, during: 'idle', finishedCalls: 0 };
const IDLE_USED: WorkerDeath = { ...HEALTHY, during: 'idle', finishedCalls: 1 };
const IN_FIRST_CALL: WorkerDeath = { ...HEALTHY, during: 'call', finishedCalls: 0 };
const IN_LATER_CALL: WorkerDeath = { ...HEALTHY, during: 'call', finishedCalls: 3 };

/** The death by an error that import or `init` threw. */
function thrown(message: string, permanent = false, death = AT_START): WorkerDeath {
  const fatal = { code: 'SERVE_INIT_FAILED', message, detail: '', permanent, transient: false };
  return { ...death, fatal };
}

const RULES = { restartLimit: 0, everReady: false, awaitsChange: false };

const failedStart = fc.constantFrom(AT_START, IDLE_UNUSED);
const callsDeath = fc.constantFrom(IDLE_USED, IN_FIRST_CALL, IN_LATER_CALL);
const anyDeath = fc.oneof(failedStart, callsDeath);
const random = fc.double({ min: 0, max: 1, noNaN: true });

/** Returns the decisions after each of these deaths, up to the first latch. */
function live(
  deaths: readonly WorkerDeath[],
  restartLimit: number,
  chance = 1,
  more: Partial<RestartRules> = {},
): Decision[] {
  const decisions: Decision[] = [];
  let last = NEW_SLOT;
  for (const death of deaths) {
    last = afterDeath(last, death, { ...RULES, ...more, restartLimit }, chance);
    decisions.push(last);
    if (last.pauseMs === null) break;
  }
  return decisions;
}

function delays(decisions: readonly Decision[]): (number | string)[] {
  return decisions.map(({ pauseMs }) => pauseMs ?? 'latch');
}

for (const [what, death] of [
  ['during its first call', IN_FIRST_CALL],
  ['during a later call', IN_LATER_CALL],
  ['idle after a finished call', IDLE_USED],
] as const) {
  test(`a worker that died ${what} is replaced at once, every time, after any history`, () => {
    assert.deepEqual(delays(live(Array<WorkerDeath>(100).fill(death), 0)), Array<number>(100).fill(0));
    fc.assert(
      fc.property(fc.array(anyDeath, { maxLength: 20 }), random, (past, chance) => {
        const before = live(past, 1000).at(-1) ?? NEW_SLOT;
        const decision = afterDeath(before, death, RULES, chance);
        assert.deepEqual(decision, NEW_SLOT);
      }),
    );
  });
}

test('failed starts in a row wait 0.5 s, doubling up to a minute', () => {
  const deaths = Array<WorkerDeath>(9).fill(AT_START);
  assert.deepEqual(delays(live(deaths, 9)), [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
});

test('a pause is between half of it and all of it', () => {
  assert.deepEqual(delays(live([AT_START, AT_START], 5, 0)), [250, 500]);
  assert.deepEqual(delays(live([AT_START, AT_START], 5, 1)), [500, 1000]);
});

for (const limit of [0, 1, 5]) {
  test(`deaths before ready or idle without a finished call: ${limit} restarts, then no more`, () => {
    fc.assert(
      fc.property(fc.array(failedStart, { minLength: 10, maxLength: 10 }), (deaths) => {
        const decisions = live(deaths, limit);
        assert.equal(decisions.length, limit + 1);
        assert.equal(decisions.at(-1)?.pauseMs, null);
      }),
    );
  });
}

test('a worker that served, or died of a call, ends the row of failed starts', () => {
  for (const between of [IDLE_USED, IN_FIRST_CALL, IN_LATER_CALL]) {
    const decisions = live([AT_START, IDLE_UNUSED, between, AT_START, IDLE_UNUSED, AT_START], 2);
    assert.deepEqual(delays(decisions), [500, 1000, 0, 500, 1000, 'latch']);
  }
});

test('a death that would repeat latches a slot at once, after any history', () => {
  fc.assert(
    fc.property(fc.array(anyDeath, { maxLength: 5 }), anyDeath, (past, last) => {
      const before = live(past, 1000).at(-1) ?? NEW_SLOT;
      assert.equal(
        afterDeath(before, thrown('', true, last), { ...RULES, restartLimit: 1000 }, 0.5).pauseMs,
        null,
      );
    }),
  );
});

test('a slot latches only after more failed starts in a row than the restart limit', () => {
  fc.assert(
    fc.property(fc.array(anyDeath, { maxLength: 50 }), fc.nat(10), random, (deaths, limit, chance) => {
      let row = 0;
      for (const [i, decision] of live(deaths, limit, chance).entries()) {
        const failed = deaths[i] === AT_START || deaths[i] === IDLE_UNUSED;
        row = failed ? row + 1 : 0;
        assert.equal(decision.pauseMs === null, row > limit);
        assert.equal(decision.pauseMs === 0, !failed);
      }
    }),
  );
});

const BY_INIT = thrown('no weights');
const OTHERWISE = thrown('no disk');

for (const [what, deaths, expected] of [
  ['twice in a row', [BY_INIT, BY_INIT], [500, 'latch']],
  ['twice in a row, after others', [AT_START, OTHERWISE, BY_INIT, BY_INIT], [500, 1000, 2000, 'latch']],
  [
    'twice, but not in a row',
    [BY_INIT, OTHERWISE, BY_INIT, AT_START, BY_INIT],
    [500, 1000, 2000, 4000, 8000],
  ],
  ['before and after a worker that served', [BY_INIT, IDLE_USED, BY_INIT], [500, 0, 500]],
] as const) {
  test(`before any worker was ready, the same error ${what}: ${expected.join(', ')}`, () => {
    assert.deepEqual(delays(live(deaths, 9)), expected);
  });
}

const PERMANENT = thrown('no inference export', true);
const NEVER_FITS: WorkerDeath = { ...PERMANENT, cause: 'over the memory budget' };
const READY = { everReady: true };
const WATCHED = { everReady: true, awaitsChange: true };

/** A row of deaths under rules: what follows each; `!` behind a pause: the slot is failing. */
for (const [what, rules, deaths, expected] of [
  ['a model that was ready', READY, [BY_INIT, BY_INIT, BY_INIT, BY_INIT], '500 1000 2000! 4000!'],
  ['one whose code would fail again', READY, [PERMANENT, PERMANENT, PERMANENT], '500 1000 2000!'],
  ['one that fails in many ways', READY, [AT_START, PERMANENT, IDLE_UNUSED, BY_INIT], '500 1000 2000! 4000!'],
  [
    'one that serves between',
    READY,
    [AT_START, AT_START, AT_START, IDLE_USED, AT_START],
    '500 1000 2000! 0 500',
  ],
  ['one whose call ends it for good', READY, [thrown('', true, IN_LATER_CALL)], '500'],
  ['one that does not fit', READY, [AT_START, NEVER_FITS], '500 latch'],
  ['one that never was ready and does not fit', {}, [NEVER_FITS], 'latch'],
  ['one under --watch', WATCHED, [BY_INIT, BY_INIT, BY_INIT], '500 1000 latch'],
  ['one under --watch whose code would fail again', WATCHED, [PERMANENT], 'latch'],
] as const) {
  test(`with two restarts allowed, ${what}: ${expected}`, () => {
    const texts = live(deaths, 2, 1, rules).map(({ pauseMs, failure }) =>
      pauseMs === null ? 'latch' : `${pauseMs}${failure === null ? '' : '!'}`,
    );
    assert.equal(texts.join(' '), expected);
  });
}

test('a worker that does not fit lacks memory, whatever it said', () => {
  const [{ failure } = { failure: null }] = live([NEVER_FITS], 2, 1, {});
  assert.equal(failure?.kind, 'out-of-memory');
});

test('a model that was ready never latches, and no pause is longer than a minute', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(anyDeath, fc.constant(PERMANENT)), { maxLength: 100 }),
      random,
      (deaths, chance) => {
        for (const { pauseMs } of live(deaths, 1, chance, READY)) {
          assert.ok(pauseMs !== null && pauseMs <= 60_000);
        }
      },
    ),
  );
});

const LOAD = '/m/service.py:3: handle(None, context), the call that loads the model, raised:';

for (const message of [
  '/m/app.mjs: init threw: RangeError: Array buffer allocation failed',
  `${LOAD} MemoryError`,
  `${LOAD} _ArrayMemoryError: Unable to allocate 745 GiB for an array with shape (100000000000,)`,
  `${LOAD} OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB`,
  `${LOAD} torch.cuda.OutOfMemoryError: CUDA out of memory.`,
  `${LOAD} RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB`,
])
  test(`no memory at the start: ${message.slice(0, 130)}`, () => {
    assert.equal(startError(thrown(message)).kind, 'out-of-memory');
  });

for (const message of [`${LOAD} ValueError: MemoryError`, `${LOAD} MemoryErrors: none`])
  test(`another reason: ${message}`, () => {
    assert.equal(startError(thrown(message)).kind, '');
  });
