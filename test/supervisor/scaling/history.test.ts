/** The bounded history of arrivals, runs and starts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ScalingHistory } from '../../../supervisor/scaling/history.js';
import type { ScalingFacts, ScalingRules } from '../../../supervisor/scaling/history.js';
import { Replay } from '../../../supervisor/scaling/replay.js';
import { poisson } from '../dispatch/simulator.js';
import { seeded } from '../../helpers/random.js';

const RULES: ScalingRules = { min: 0, max: 8, idleTimeoutMs: 60_000, targetWaitMs: 100, batchSize: 1 };

function replayOf(history: ScalingHistory, nowMs: number, windowMs: number, rules = RULES): Replay {
  const facts: ScalingFacts = { nowMs, ready: [], startingSinceMs: [], line: null, history, replayAtMs: 0 };
  return new Replay(facts, rules, windowMs);
}

test('a start is expected to take a second, then the mean of the last five', () => {
  const history = new ScalingHistory(60_000);
  assert.equal(history.startMs, 1000);
  for (const ms of [9000, 100, 200, 300, 400, 500]) history.started(ms, 10_000);
  assert.equal(history.startMs, 300);
  assert.equal(history.lastStartMs, 9900);
});

test('the last call or the end of the last run is the last activity', () => {
  const history = new ScalingHistory(60_000);
  assert.equal(history.activeMs, -Infinity);
  history.came(5);
  assert.equal(history.activeMs, 5);
  history.ran(100, 105);
  assert.equal(history.activeMs, 105);
});

test('a replay counts the calls of its window that wait over the target, with the run times measured', () => {
  const history = new ScalingHistory(60_000);
  for (const atMs of [0, 1000, 1000, 1000, 1000]) history.came(atMs);
  for (let i = 0; i < 5; i += 1) history.ran(80, 2000);
  const replay = replayOf(history, 2000, 1500);
  assert.equal(replay.calls, 4);
  assert.deepEqual(
    [1, 2, 4].map((workers) => replay.missedOn(workers)),
    [2, 0, 0],
  );
  // A batch of several runs as long as one of that size was measured to.
  assert.equal(replayOf(history, 2000, 1500, { ...RULES, batchSize: 4 }).missedOn(1), 0);
});

test('the newest run times belong to the newest calls', () => {
  const history = new ScalingHistory(60_000);
  for (const atMs of [0, 10_000, 10_000]) history.came(atMs);
  for (const ms of [9000, 500, 500]) history.ran(ms, 10_500);
  assert.equal(replayOf(history, 10_500, 1000).missedOn(1), 1);
  assert.equal(replayOf(history, 10_500, 20_000).missedOn(1), 1);
});

test('however many calls come, those of the time that is kept are counted, in bounded memory', () => {
  const history = new ScalingHistory(60_000);
  const perMs = 2;
  const arrivals = poisson(200_000, perMs, seeded(1));
  for (const { atMs } of arrivals) history.came(atMs);
  const nowMs = arrivals.at(-1)?.atMs as number;
  const came = arrivals.filter(({ atMs }) => atMs >= nowMs - 60_000).length;
  const { calls } = replayOf(history, nowMs, 60_000);
  assert.ok(history.length <= 4096);
  assert.ok(Math.abs(calls - came) < perMs * 100, `${calls} of ${came} calls`);
});

test('after a crowd, rare calls are remembered one by one again', () => {
  const history = new ScalingHistory(60_000);
  for (let i = 0; i < 50_000; i += 1) history.came(i);
  for (let i = 0; i < 20_000; i += 1) history.came(200_000 + 50 * i);
  const nowMs = 200_000 + 50 * 20_000;
  assert.equal(replayOf(history, nowMs, 10_000).calls, 200);
  assert.equal(history.length - history.indexSince(nowMs - 10_000), 200);
});

test('many calls in few entries seem to need no fewer workers than when each is known', () => {
  const missedPercent = (keepMs: number, seed: number): number[] => {
    const history = new ScalingHistory(keepMs);
    for (const { atMs } of poisson(keepMs / 100, 0.01, seeded(seed))) {
      history.came(atMs);
      history.ran(150, atMs);
    }
    const replay = replayOf(history, keepMs, keepMs);
    return [2, 3].map((workers) => (100 * replay.missedOn(workers)) / replay.calls);
  };
  const minutes = Array.from({ length: 20 }, (_, i) => missedPercent(60_000, i));
  const twentyMinutes = missedPercent(1_200_000, 1);
  for (const [i, percent] of twentyMinutes.entries()) {
    const mean = minutes.reduce((sum, each) => sum + (each[i] as number), 0) / minutes.length;
    assert.ok(
      percent > 0.6 * mean && percent < 1.8 * mean,
      `${percent}% missed, ${mean}% with each call known`,
    );
  }
});
