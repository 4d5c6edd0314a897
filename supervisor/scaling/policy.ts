/**
 * Decides how many workers a model should have. One pure function of facts, without clock, timer or workers of its own, so that
 * the simulator of the tests runs the very same code.
 *
 * 1. Bounds: never fewer than the minimum nor more than the maximum; at zero, the first call starts a worker.
 * 2. One more for the line: the last call in it would wait over the target, and with one more that much less, start included.
 * 3. More for what comes: the recent calls, replayed on the workers that are there, miss the target too often.
 * 4. One fewer: the calls of the last idle timeout, replayed on one fewer, keep the target, and nothing was started in it.
 *
 * Since (4) waits for an idle timeout without a start, any idle timeout sees at most `max` starts, deaths apart.
 */
import type { ScaledWorker, ScalingFacts, ScalingRules } from './history.js';
import { Replay } from './replay.js';

export interface Decision {
  /** The number of workers that should be there, starting ones included. Only idle workers may leave for it. */
  readonly wanted: number;
  readonly why: Why;
  /** When to ask again if no call has to wait before; null if only an event can change the decision. */
  readonly againAtMs: number | null;
  /** To be given back in the next facts: no replay happens before, so that asking costs little. */
  readonly replayAtMs: number;
}

/** The rule that decided, with its figures. `from` is the number of workers there, starting ones included. */
export type Why =
  /** The number is right, or no change is known to be better. */
  | { readonly rule: 'enough'; readonly from: number }
  | { readonly rule: 'minimum'; readonly from: number; readonly min: number }
  | { readonly rule: 'maximum'; readonly from: number; readonly max: number }
  /** A call came while there was no worker. */
  | { readonly rule: 'first-call'; readonly from: 0; readonly calls: number }
  /** The last call in line would wait `waitMs`, with one worker more `withOneMoreMs`. */
  | {
      readonly rule: 'line';
      readonly from: number;
      readonly calls: number;
      readonly waitMs: number;
      readonly withOneMoreMs: number;
      readonly targetWaitMs: number;
    }
  /**
   * `misses`: `missed` of the `calls` calls of the last `windowMs` would have waited over the target on the workers there are.
   * `spare`: only so many would have on one fewer.
   */
  | {
      readonly rule: 'misses' | 'spare';
      readonly from: number;
      readonly windowMs: number;
      readonly targetWaitMs: number;
      readonly calls: number;
      readonly missed: number;
    }
  /** No call came or ended in the idle timeout. */
  | { readonly rule: 'idle'; readonly from: number; readonly idleMs: number };

/** Fewer calls than this show no rate. */
const ENOUGH_CALLS = 20;

/**
 * Parts of the calls that may miss the target: before one more starts, of the last seconds and of the last idle timeout, and on
 * one fewer before one leaves. They lie around 1%, since a short time has luck: with 1% for all, a steady load of 4 h started 129
 * workers instead of 17, for 9% more worker-seconds and a p99 of 75 ms instead of 87 (`npm run bench -- scaling`).
 */
const MISSED_LATELY = 0.1;
const MISSED = 0.03;
const MISSED_ON_FEWER = 0.005;

/**
 * A worker leaves on the calls of so many starts, if they take longer than the idle timeout: a daily wave with starts of 60 s had
 * 204 of them instead of 52.
 */
const STARTS_TO_LEAVE = 3;

/** Time between two replays. With the default idle timeout they take well under a millisecond, with one of an hour some. */
const REPLAY_EVERY_MS = 1000;

/** While calls wait, the line is looked at again so often within the target: a run may take longer than predicted. */
const LOOKS_PER_TARGET = 2;
const SHORTEST_LOOK_MS = 10;

/**
 * Returns the number of workers that the model should have. To be asked
 *
 * - when a call has to wait (not for calls that an idle worker takes at once),
 * - when a worker becomes ready or is lost, and when a rule changes,
 * - at `againAtMs`.
 *
 * It may be asked for every call that waits: the cost is that of a loop over the workers, and at most once a second a replay.
 * After a decision that changes the number, ask again once it is carried out.
 */
export function decide(facts: ScalingFacts, rules: ScalingRules): Decision {
  const from = facts.ready.length + facts.startingSinceMs.length;
  const { replayAtMs } = facts;
  const { min, max } = rules;
  if (from < min) return changed(facts, min, { rule: 'minimum', from, min });
  if (from > max) return changed(facts, max, { rule: 'maximum', from, max });
  if (from === 0 && (max === 0 || facts.line === null))
    return { wanted: 0, why: { rule: 'enough', from }, againAtMs: null, replayAtMs };
  return moreForTheLine(facts, rules, from) ?? afterReplay(facts, rules, from);
}

function changed({ nowMs, replayAtMs }: ScalingFacts, wanted: number, why: Why): Decision {
  return { wanted, why, againAtMs: nowMs + REPLAY_EVERY_MS, replayAtMs };
}

/** Rule 2, and the first worker; null if the line needs no more. */
function moreForTheLine(facts: ScalingFacts, rules: ScalingRules, from: number): Decision | null {
  const { line } = facts;
  if (line === null) return null;
  const { calls } = line;
  const { max, targetWaitMs } = rules;
  let why: Why | null = from === 0 ? { rule: 'first-call', from, calls } : null;
  let wanted = Math.max(1, from);
  for (; wanted < max; wanted += 1) {
    const waitMs = predictLastWait(facts, rules, wanted - from);
    if (waitMs <= targetWaitMs) break;
    const withOneMoreMs = predictLastWait(facts, rules, wanted - from + 1);
    if (waitMs - withOneMoreMs < targetWaitMs) break;
    why ??= { rule: 'line', from, calls, waitMs, withOneMoreMs, targetWaitMs };
  }
  return why === null ? null : changed(facts, wanted, why);
}

/** Rules 3 and 4, at most once a second. */
function afterReplay(facts: ScalingFacts, rules: ScalingRules, from: number): Decision {
  const { nowMs, replayAtMs } = facts;
  if (nowMs < replayAtMs) return enough(facts, rules, from, replayAtMs);
  const next = { againAtMs: nowMs + REPLAY_EVERY_MS, replayAtMs: nowMs + REPLAY_EVERY_MS };
  const more = moreForMisses(facts, rules, from);
  if (more !== null) return { wanted: more[0], why: more[1], ...next };
  const fewer = spareOf(facts, rules, from);
  // The next one may leave at once too.
  if (fewer !== null) return { wanted: from - 1, why: fewer, againAtMs: nowMs, replayAtMs: nowMs };
  return enough(facts, rules, from, next.replayAtMs);
}

/** No change; asks again while calls wait, and as long as a worker may leave later. */
function enough(facts: ScalingFacts, rules: ScalingRules, from: number, replayAtMs: number): Decision {
  const { nowMs, line } = facts;
  const lookMs = Math.max(SHORTEST_LOOK_MS, rules.targetWaitMs / LOOKS_PER_TARGET);
  const lineAtMs = line !== null && from < rules.max ? nowMs + lookMs : Infinity;
  const leaveAtMs = from > rules.min ? Math.max(replayAtMs, mayLeaveAtMs(facts, rules, from)) : Infinity;
  const atMs = Math.min(lineAtMs, leaveAtMs);
  return {
    wanted: from,
    why: { rule: 'enough', from },
    againAtMs: atMs === Infinity ? null : atMs,
    replayAtMs,
  };
}

/** Rule 3: the number of workers that would have kept the target, and why; null if those there are did. */
function moreForMisses(facts: ScalingFacts, rules: ScalingRules, from: number): [number, Why] | null {
  if (from >= rules.max || facts.line === null) return null;
  const lately = wouldKeep(facts, rules, from, facts.history.recentMs, MISSED_LATELY);
  return lately ?? wouldKeep(facts, rules, from, rules.idleTimeoutMs, MISSED);
}

function wouldKeep(
  facts: ScalingFacts,
  rules: ScalingRules,
  from: number,
  windowMs: number,
  share: number,
): [number, Why] | null {
  const replay = new Replay(facts, rules, windowMs);
  const { calls } = replay;
  if (calls < ENOUGH_CALLS) return null;
  const allowed = share * calls;
  const missed = replay.missedOn(from);
  if (missed <= allowed) return null;
  let wanted = from + 1;
  while (wanted < rules.max && replay.missedOn(wanted, allowed) > allowed) wanted += 1;
  return [wanted, { rule: 'misses', from, windowMs, targetWaitMs: rules.targetWaitMs, calls, missed }];
}

/** Rule 4; null if no worker should leave now. */
function spareOf(facts: ScalingFacts, rules: ScalingRules, from: number): Why | null {
  const { history, nowMs, ready } = facts;
  const { idleTimeoutMs, targetWaitMs } = rules;
  if (from <= rules.min || nowMs < mayLeaveAtMs(facts, rules, from)) return null;
  if (facts.line !== null || !ready.some(mayLeave)) return null;
  const idleMs = nowMs - history.activeMs;
  if (idleMs >= idleTimeoutMs) return { rule: 'idle', from, idleMs };
  if (from === 1) return null;
  const windowMs = Math.max(idleTimeoutMs, STARTS_TO_LEAVE * history.startMs);
  const replay = new Replay(facts, rules, windowMs);
  const { calls } = replay;
  const allowed = MISSED_ON_FEWER * calls;
  const missed = replay.missedOn(from - 1, allowed);
  return missed > allowed ? null : { rule: 'spare', from, windowMs, targetWaitMs, calls, missed };
}

function mayLeave({ heldBatches, isFrozen = false }: ScaledWorker): boolean {
  return heldBatches === 0 || isFrozen;
}

/** The earliest time at which a worker may leave: an idle timeout after the last start, the last one also after the last call. */
function mayLeaveAtMs({ history, startingSinceMs }: ScalingFacts, rules: ScalingRules, from: number): number {
  const lastStartMs = Math.max(history.lastStartMs, ...startingSinceMs);
  const sinceMs = from > 1 ? lastStartMs : Math.max(lastStartMs, history.activeMs);
  return sinceMs + rules.idleTimeoutMs;
}

/**
 * Predicts how long the last call in line will have waited when it begins, with `more` workers than there are, which would be
 * spawned now if none stands by.
 */
function predictLastWait(facts: ScalingFacts, rules: ScalingRules, more: number): number {
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
