/** Predicts how long the last call in line will have waited when it begins. */
import type { ScalingFacts, ScalingRules } from './policy.js';

/** The wait with `more` workers than there are, which would be spawned now if none stands by. */
export function predictLastWait(facts: ScalingFacts, rules: ScalingRules, more: number): number {
  const { nowMs, line, history, standing = 0 } = facts;
  const { calls, lastSinceMs, lastUntilMs } = line as NonNullable<typeof line>;
  const runs = Math.ceil(calls / rules.batchSize);
  const runMs = expectedRunMs(facts, calls / runs);
  const isMeasured = history.service.meanMs !== null;
  // A start that is late tells that the next one takes as long.
  const startMs = facts.startingSinceMs.reduce(
    (ms, sinceMs) => Math.max(ms, nowMs - sinceMs),
    history.startMs,
  );
  const freeInMs = facts.ready.map(({ heldBatches, runningMs }) => {
    if (heldBatches === 0) return 0;
    // A run that was never measured is thought of as half done; a measured one that is late as much later again.
    const restMs = isMeasured ? Math.abs(runMs - runningMs) : runMs;
    return restMs + (heldBatches - 1) * runMs;
  });
  for (const sinceMs of facts.startingSinceMs) freeInMs.push(Math.abs(history.startMs - (nowMs - sinceMs)));
  for (let i = 0; i < more; i += 1) freeInMs.push(i < standing ? 0 : startMs);
  return Math.min(nowMs + beginInMs(freeInMs, runs, runMs), lastUntilMs) - lastSinceMs;
}

/** Before enough runs were measured, one takes as long as the oldest running has. */
function expectedRunMs({ history, ready }: ScalingFacts, calls: number): number {
  const predictedMs = history.service.predictMs(calls, 1);
  return predictedMs ?? ready.reduce((oldestMs, { runningMs }) => Math.max(oldestMs, runningMs), 0);
}

/** When the last of `runs` runs begins, each of which goes to the worker that is free first. */
function beginInMs(freeInMs: number[], runs: number, runMs: number): number {
  if (runMs <= 0) return Math.min(...freeInMs);
  // All but the last round can be skipped: by then every worker that is free early enough has the same number of runs.
  let left = runs - skip(freeInMs, runs, runMs);
  for (;;) {
    let first = 0;
    for (let i = 1; i < freeInMs.length; i += 1) {
      if ((freeInMs[i] as number) < (freeInMs[first] as number)) first = i;
    }
    left -= 1;
    if (left <= 0) return freeInMs[first] as number;
    freeInMs[first] = (freeInMs[first] as number) + runMs;
  }
}

/** Gives most of the runs to the workers, all of which are then free within one run of each other; returns their number. */
function skip(freeInMs: number[], runs: number, runMs: number): number {
  const toGive = runs - freeInMs.length;
  if (toGive <= 0) return 0;
  const sorted = freeInMs.toSorted((a, b) => a - b);
  let levelMs = 0;
  let sumMs = 0;
  for (let i = 0; i < sorted.length; i += 1) {
    sumMs += sorted[i] as number;
    levelMs = (toGive * runMs + sumMs) / (i + 1);
    if (levelMs <= (sorted[i + 1] ?? Infinity)) break;
  }
  let given = 0;
  for (let i = 0; i < freeInMs.length; i += 1) {
    const fits = Math.max(0, Math.floor((levelMs - (freeInMs[i] as number)) / runMs));
    freeInMs[i] = (freeInMs[i] as number) + fits * runMs;
    given += fits;
  }
  return given;
}
