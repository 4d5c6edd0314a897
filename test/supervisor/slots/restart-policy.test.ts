import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  NEW_SLOT,
  afterDeath,
  type Death,
  type Decision,
  type SlotHistory,
} from '../../../supervisor/slots/restart-policy.js';

const BUSY: Death = { during: 'call', readyMs: 1000, initMs: 100, finishedCalls: 3, permanent: false };
const AT_START: Death = { during: 'start', readyMs: 0, initMs: 0, finishedCalls: 0, permanent: false };
const IDLE_UNUSED: Death = { ...BUSY, during: 'idle', finishedCalls: 0 };

const anyDeath = fc.record<Death>({
  during: fc.constantFrom('start', 'idle', 'call'),
  readyMs: fc.nat(200_000),
  initMs: fc.nat(100_000),
  finishedCalls: fc.nat(3),
  permanent: fc.constant(false),
});
const random = fc.double({ min: 0, max: 1, noNaN: true });

/** Decisions after each of these deaths; stops with the first latch. */
function live(deaths: readonly Death[], restartLimit: number, chance = 1): Decision[] {
  const decisions: Decision[] = [];
  let history: SlotHistory = NEW_SLOT;
  for (const death of deaths) {
    const decision = afterDeath(history, death, restartLimit, chance);
    decisions.push(decision);
    if (decision.action === 'latch') break;
    history = decision.history;
  }
  return decisions;
}

function delays(decisions: readonly Decision[]): (number | string)[] {
  return decisions.map((decision) => (decision.action === 'restart' ? decision.delayMs : 'latch'));
}

test('a slot that has worked is restarted at once; further deaths wait 0.5 s, doubling up to 30 s', () => {
  const deaths = Array<Death>(10).fill(BUSY);
  assert.deepEqual(
    delays(live(deaths, 5)),
    [0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000],
  );
});

test('a pause is between half of it and all of it', () => {
  assert.deepEqual(delays(live([AT_START, AT_START], 5, 0)), [250, 500]);
  assert.deepEqual(delays(live([AT_START, AT_START], 5, 1)), [500, 1000]);
});

for (const [what, death] of [
  ['before ready', AT_START],
  ['idle without a finished call', IDLE_UNUSED],
] as const) {
  for (const limit of [0, 1, 5]) {
    test(`deaths ${what}: ${limit} restarts, then no more`, () => {
      const decisions = live(Array<Death>(10).fill(death), limit);
      assert.equal(decisions.length, limit + 1);
      assert.equal(decisions.at(-1)?.action, 'latch');
    });
  }
}

test('deaths during calls never give a slot up, not even the first call of each worker', () => {
  const first = { ...BUSY, finishedCalls: 0 };
  fc.assert(
    fc.property(fc.array(fc.constantFrom(BUSY, first), { maxLength: 100 }), (deaths) => {
      assert.ok(live(deaths, 0).every(({ action }) => action === 'restart'));
    }),
  );
});

test('a death that would repeat gives a slot up at once, whatever was before', () => {
  fc.assert(
    fc.property(fc.array(anyDeath, { maxLength: 5 }), anyDeath, (past, last) => {
      const before = live(past, 1000).at(-1)?.history ?? NEW_SLOT;
      assert.equal(afterDeath(before, { ...last, permanent: true }, 1000, 0.5).action, 'latch');
    }),
  );
});

test('one finished call forgives the strikes, and only a healthy spell forgives the backoff', () => {
  const decisions = live([AT_START, AT_START, BUSY, AT_START, AT_START, AT_START], 2);
  assert.deepEqual(delays(decisions), [500, 1000, 2000, 4000, 8000, 'latch']);
});

for (const [initMs, readyMs, healthy] of [
  [100, 29_999, false],
  [100, 30_000, true],
  [60_000, 119_999, false],
  [60_000, 120_000, true],
] as const) {
  test(`an init of ${initMs} ms and ${readyMs} ms of ready time ${healthy ? 'are' : 'are not'} a healthy spell`, () => {
    const last: Death = { ...BUSY, initMs, readyMs };
    const [, , decision] = live([BUSY, BUSY, last], 5);
    assert.equal(decision?.action === 'restart' && decision.delayMs === 0, healthy);
  });
}

test('whatever dies: pauses are from 0 to 30 s, a restart is immediate only after finished calls, and history only grows or is forgiven', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyDeath, random), { maxLength: 50 }), fc.nat(10), (deaths, limit) => {
      let history = NEW_SLOT;
      for (const [death, chance] of deaths) {
        const decision = afterDeath(history, death, limit, chance);
        assert.ok(decision.history.deaths >= 1 && decision.history.strikes <= decision.history.deaths);
        if (decision.action === 'latch') {
          assert.ok(decision.history.strikes > limit);
          return;
        }
        assert.ok(decision.delayMs >= 0 && decision.delayMs <= 30_000);
        if (decision.delayMs === 0) assert.ok(death.finishedCalls > 0);
        else assert.ok(decision.delayMs >= 250);
        history = decision.history;
      }
    }),
  );
});

test('a slot whose workers never finish a call nor run one is given up after a bounded number of deaths', () => {
  const useless = fc.constantFrom(AT_START, IDLE_UNUSED);
  fc.assert(
    fc.property(fc.array(useless, { minLength: 30, maxLength: 30 }), fc.nat(20), (deaths, limit) => {
      assert.equal(live(deaths, limit).length, limit + 1);
    }),
  );
});
