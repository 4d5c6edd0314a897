/** Replays the calls that came on another number of workers, with the run times that were measured. */
import type { ScalingFacts, ScalingHistory, ScalingRules } from './history.js';

/**
 * Most steps of a replay: more calls than this are taken several at a time, by several workers together, which makes waits look
 * longer by about the time of a step. 4096 take 0.1 to 0.2 ms.
 */
const MAX_STEPS = 32_768;
const ENOUGH_STEPS = 4096;

/** A step of this time is short beside a wait that is worth a worker. */
const STEP_MS = 15;

/** Gaps between independent calls, relative to their mean: the quantiles of the exponential distribution, mixed. */
const GAPS = Float64Array.from({ length: 251 }, (_, i) => -Math.log((((i * 97) % 251) + 0.5) / 251));

export class Replay {
  /** Number of calls in the window. */
  readonly calls: number;
  readonly #facts: ScalingFacts;
  readonly #rules: ScalingRules;
  /** Calls that one step stands for. */
  readonly #atOnce: number;
  readonly #arrivalsMs: readonly number[];

  constructor(facts: ScalingFacts, rules: ScalingRules, windowMs: number) {
    const { history, nowMs } = facts;
    const since = history.indexSince(nowMs - windowMs);
    let calls = 0;
    for (let i = since; i < history.length; i += 1) calls += history.calls[i] as number;
    this.calls = calls;
    this.#facts = facts;
    this.#rules = rules;
    const steps = Math.min(MAX_STEPS, Math.max(ENOUGH_STEPS, windowMs / STEP_MS));
    this.#atOnce = Math.max(1, Math.ceil(calls / steps));
    this.#arrivalsMs = spread(history, since, this.#atOnce);
  }

  /**
   * Counts the calls that would have waited longer than the target on so many workers, idle at the begin of the window. It ends
   * early when the count is above `most`.
   */
  missedOn(workers: number, most = Infinity): number {
    const { batchSize, targetWaitMs } = this.#rules;
    const arrivalsMs = this.#arrivalsMs;
    const { length } = arrivalsMs;
    const freeAtMs = new Float64Array(Math.max(1, Math.floor(workers / this.#atOnce)));
    const runsPerStep = (this.#atOnce * freeAtMs.length) / workers;
    let missed = 0;
    for (let i = 0; i < length && missed <= most;) {
      const first = findFirst(freeAtMs);
      const beginMs = Math.max(freeAtMs[first] as number, arrivalsMs[i] as number);
      const back = Math.ceil((length - i) / batchSize) - 1;
      let size = 0;
      for (; size < batchSize && i < length && (arrivalsMs[i] as number) <= beginMs; i += 1, size += 1) {
        if (beginMs - (arrivalsMs[i] as number) > targetWaitMs) missed += this.#atOnce;
      }
      freeAtMs[first] = beginMs + runsPerStep * this.#runMs(back, size);
    }
    return Math.min(missed, this.calls);
  }

  /** The run that was measured so many runs ago; before any was, the age of the oldest that runs. */
  #runMs(back: number, calls: number): number {
    const { history, ready } = this.#facts;
    return history.runBackMs(back, calls) ?? ready.reduce((ms, { runningMs }) => Math.max(ms, runningMs), 0);
  }
}

function findFirst(freeAtMs: Float64Array): number {
  let first = 0;
  for (let i = 1; i < freeAtMs.length; i += 1) {
    if ((freeAtMs[i] as number) < (freeAtMs[first] as number)) first = i;
  }
  return first;
}

/**
 * One time for every `atOnce` calls. The calls of an entry lie between its first and its last with gaps as of independent callers:
 * evenly spread, a window of 6000 calls in 2048 entries seemed to need a tenth fewer workers than it did.
 */
function spread(
  { firstMs, lastMs, calls, length }: ScalingHistory,
  since: number,
  atOnce: number,
): readonly number[] {
  const atMs: number[] = [];
  // The gap between several calls varies less than that between two.
  const variation = 1 / Math.sqrt(atOnce);
  let carried = 0;
  for (let i = since; i < length; i += 1) {
    carried += calls[i] as number;
    const steps = Math.floor(carried / atOnce);
    carried -= steps * atOnce;
    let gaps = 0;
    for (let k = 1; k < steps; k += 1) gaps += gapAt(atMs.length + k, variation);
    const unitMs = gaps === 0 ? 0 : ((lastMs[i] as number) - (firstMs[i] as number)) / gaps;
    let stepAtMs = firstMs[i] as number;
    for (let k = 0; k < steps; k += 1) {
      if (k > 0) stepAtMs += unitMs * gapAt(atMs.length, variation);
      atMs.push(stepAtMs);
    }
  }
  return atMs;
}

function gapAt(index: number, variation: number): number {
  return 1 + variation * ((GAPS[index % GAPS.length] as number) - 1);
}
