/** Replays the calls that came on another number of workers, with the run times that were measured. */
import type { ScalingFacts, ScalingRules } from './policy.js';

export interface Replayed {
  readonly calls: number;
  /** Calls that waited longer than the target. */
  readonly missed: number;
}

/** Most steps of a replay; more calls than this are taken several at a time. */
const MAX_STEPS = 16_384;

/** A target is kept if no more than this part of the calls miss it. */
const MISSES_ALLOWED = 0.01;

export function missesTooOften({ calls, missed }: Replayed): boolean {
  return missed > MISSES_ALLOWED * calls;
}

/** The calls since `fromMs` on so many workers, which are idle at the begin. It ends early once too many calls missed. */
export function replay(
  { history, ready }: ScalingFacts,
  { batchSize, targetWaitMs }: ScalingRules,
  workers: number,
  fromMs: number,
): Replayed {
  const since = history.indexSince(fromMs);
  let calls = 0;
  for (let i = since; i < history.length; i += 1) calls += history.calls[i] as number;
  if (workers === 0) return { calls, missed: calls };
  const oldestMs = ready.reduce((ms, { runningMs }) => Math.max(ms, runningMs), 0);
  const atOnce = Math.ceil(calls / MAX_STEPS);
  const arrivals = spread(history, since, atOnce);
  const freeAtMs = new Float64Array(workers).fill(-Infinity);
  const most = batchSize;
  let missed = 0;
  for (let i = 0; i < arrivals.length;) {
    let first = 0;
    for (let w = 1; w < workers; w += 1) if ((freeAtMs[w] as number) < (freeAtMs[first] as number)) first = w;
    const atMs = Math.max(freeAtMs[first] as number, arrivals[i] as number);
    const back = Math.ceil((arrivals.length - i) / most);
    let size = 0;
    for (; size < most && i < arrivals.length && (arrivals[i] as number) <= atMs; i += 1, size += 1) {
      if (atMs - (arrivals[i] as number) > targetWaitMs) missed += atOnce;
    }
    if (missed > MISSES_ALLOWED * calls) break;
    freeAtMs[first] = atMs + atOnce * (history.runBackMs(back, size) ?? oldestMs);
  }
  return { calls, missed: Math.min(missed, calls) };
}

/** One time for every `atOnce` calls. */
function spread(
  { firstMs, lastMs, calls, length }: ScalingFacts['history'],
  since: number,
  atOnce: number,
): number[] {
  const atMs: number[] = [];
  let carried = 0;
  for (let i = since; i < length; i += 1) {
    const count = calls[i] as number;
    const stepMs = count === 1 ? 0 : ((lastMs[i] as number) - (firstMs[i] as number)) / (count - 1);
    for (carried += count; carried >= atOnce; carried -= atOnce) {
      atMs.push((firstMs[i] as number) + stepMs * (count - Math.min(count, carried)));
    }
  }
  return atMs;
}
