/** The rules of the scaling policy, one by one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ScalingHistory } from '../../../supervisor/scaling/history.js';
import { decide, type ScalingFacts, type ScalingRules } from '../../../supervisor/scaling/policy.js';

const RULES: ScalingRules = { min: 0, max: 4, idleTimeoutMs: 60_000, targetWaitMs: 100, batchSize: 1 };
const IDLE = { heldBatches: 0, runningMs: 0 };

/** A model whose runs and starts take these times, at 100 s. */
function facts(given: Partial<ScalingFacts>, runMs = 50, startMs = 300): ScalingFacts {
  const history = new ScalingHistory(60_000);
  for (let i = 0; i < 5; i += 1) history.ran(runMs, 0);
  history.started(startMs, 0);
  return { nowMs: 100_000, ready: [], startingSinceMs: [], line: null, history, replayAtMs: 0, ...given };
}

function line(calls: number, lastUntilMs = Infinity) {
  return { calls, lastSinceMs: 100_000, lastUntilMs };
}

test('the number of workers is brought within its bounds', () => {
  assert.equal(decide(facts({}), { ...RULES, min: 2 }).wanted, 2);
  assert.equal(decide(facts({ ready: [IDLE, IDLE] }), { ...RULES, max: 1 }).wanted, 1);
});

test('the first call at zero starts one worker, and eight start no more if they are short', () => {
  assert.equal(decide(facts({}), RULES).wanted, 0);
  const first = decide(facts({ line: line(8) }, 10), RULES);
  assert.deepEqual(first.why, { rule: 'first-call', from: 0, calls: 8 });
  assert.equal(first.wanted, 1);
  assert.equal(decide(facts({ line: line(8), startingSinceMs: [99_900] }, 10), RULES).wanted, 1);
});

test('a line that waits over the target gets as many workers as shorten it by the target each', () => {
  const busy = { heldBatches: 1, runningMs: 0 };
  const { wanted, why } = decide(facts({ ready: [busy], line: line(4) }, 1000), RULES);
  assert.equal(wanted, 4);
  assert.deepEqual(why, {
    rule: 'line',
    from: 1,
    calls: 4,
    waitMs: 4000,
    withOneMoreMs: 2000,
    targetWaitMs: 100,
  });
  // A start of 60 s is worth nothing to a line of 4 s.
  assert.equal(decide(facts({ ready: [busy], line: line(4) }, 1000, 60_000), RULES).wanted, 1);
});

test('a call that gives up before a new worker could be ready starts none', () => {
  const busy = { heldBatches: 1, runningMs: 0 };
  assert.equal(decide(facts({ ready: [busy], line: line(1, 100_250) }, 1000), RULES).wanted, 1);
});
