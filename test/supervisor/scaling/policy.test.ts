/** The rules of the scaling policy, one by one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ScalingHistory } from '../../../supervisor/scaling/history.js';
import type { ScalingFacts, ScalingRules } from '../../../supervisor/scaling/history.js';
import { decide } from '../../../supervisor/scaling/policy.js';

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

test('a worker that stands by shortens the line at once, where a start would not', () => {
  const busy = { ready: [{ heldBatches: 1, runningMs: 0 }], line: line(4) };
  const wanted = [0, 1].map((standing) => decide(facts({ ...busy, standing }), RULES).wanted);
  assert.deepEqual(wanted, [1, 2]);
});

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

test('before five runs were measured, one takes as long as the oldest running has', () => {
  const unknown = (runningMs: number): ScalingFacts => ({
    ...facts({ ready: [{ heldBatches: 1, runningMs }], line: line(1) }),
    history: new ScalingHistory(60_000),
  });
  // An unknown start takes a second.
  assert.equal(decide(unknown(1050), RULES).wanted, 1);
  assert.equal(decide(unknown(1200), RULES).wanted, 2);
});

test('a run that is late is expected to be as late again: a stream lets another worker start', () => {
  const stream = { heldBatches: 1, runningMs: 30_000 };
  assert.equal(decide(facts({ ready: [stream], line: line(1) }), RULES).wanted, 2);
});

test('an unknown start that is late makes the next one be expected as late', () => {
  const history = new ScalingHistory(60_000);
  const late = { ...facts({ startingSinceMs: [60_000], line: line(1) }), history };
  assert.equal(decide(late, RULES).wanted, 1);
});

test('calls that a batch takes together wait for its run only', () => {
  const busy = { heldBatches: 1, runningMs: 0 };
  const given = facts({ ready: [busy], line: line(8) }, 90);
  assert.equal(decide(given, { ...RULES, batchSize: 8 }).wanted, 1);
  assert.equal(decide(given, RULES).wanted, 2);
});

/** Calls of `runMs` every `everyMs` in the 30 s before 100 s. */
function visited(runMs: number, everyMs: number, given: Partial<ScalingFacts>): ScalingFacts {
  const made = facts(given, runMs);
  for (let atMs = 70_000; atMs < 100_000; atMs += everyMs) {
    made.history.came(atMs);
    made.history.ran(runMs, atMs + runMs);
  }
  return made;
}

test('if recent calls miss the target on the workers there are, as many start as keep it', () => {
  const busy = { heldBatches: 1, runningMs: 0 };
  // Three workers of 280 ms take a call every 100 ms.
  const { wanted, why } = decide(visited(280, 100, { ready: [busy], line: line(1) }), RULES);
  assert.equal(wanted, 3);
  assert.equal(why.rule, 'misses');
  const { windowMs, calls, missed } = why;
  assert.deepEqual([windowMs, calls], [10_000, 100]);
  assert.ok(missed > 90);
});

test('no replay happens before the time that the last decision set', () => {
  const busy = { heldBatches: 1, runningMs: 0 };
  const given = visited(280, 100, { ready: [busy], line: line(1), replayAtMs: 100_500 });
  const { wanted, why, replayAtMs, againAtMs } = decide(given, RULES);
  assert.deepEqual([wanted, why.rule, replayAtMs, againAtMs], [1, 'enough', 100_500, 100_050]);
});

test('a worker leaves if the calls of the idle timeout keep the target without it, but not soon after a start', () => {
  const ready = [IDLE, IDLE, IDLE];
  const spare = decide(visited(50, 1000, { ready }), RULES);
  assert.equal(spare.wanted, 2);
  assert.deepEqual(spare.why, {
    rule: 'spare',
    from: 3,
    windowMs: 60_000,
    targetWaitMs: 100,
    calls: 30,
    missed: 0,
  });
  // Two of them are needed.
  assert.equal(decide(visited(150, 100, { ready: [IDLE, IDLE] }), RULES).wanted, 2);
  const young = visited(50, 1000, { ready });
  young.history.started(300, 60_300);
  assert.deepEqual([decide(young, RULES).wanted, decide(young, RULES).againAtMs], [3, 120_000]);
});

test('the last worker leaves when no call came or ended in the idle timeout', () => {
  const given = (endedAtMs: number): ScalingFacts => {
    const made = facts({ ready: [IDLE] });
    made.history.came(1000);
    made.history.ran(100, endedAtMs);
    return made;
  };
  assert.deepEqual(decide(given(40_000), RULES).why, { rule: 'idle', from: 1, idleMs: 60_000 });
  assert.deepEqual(
    [decide(given(41_000), RULES).wanted, decide(given(41_000), RULES).againAtMs],
    [1, 101_000],
  );
  assert.equal(decide(given(40_000), { ...RULES, min: 1 }).wanted, 1);
});

test('only an idle worker leaves', () => {
  const stream = { heldBatches: 1, runningMs: 90_000 };
  assert.equal(decide(facts({ ready: [stream] }), RULES).wanted, 1);
  assert.equal(decide(facts({ ready: [stream, IDLE] }), RULES).wanted, 1);
});

test('a model with its minimum of workers and no line needs no look', () => {
  assert.equal(decide(facts({ ready: [IDLE] }), { ...RULES, min: 1 }).againAtMs, null);
  assert.equal(decide(facts({}), RULES).againAtMs, null);
});
