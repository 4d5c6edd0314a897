/** Gathers the facts about a model's workers on which the scaling policy decides. */
import type { ScaledWorker } from '../scaling/policy.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { Slot } from '../slots/slot.js';

export interface CountedWorkers {
  readonly ready: readonly ScaledWorker[];
  /** When the worker of each other slot was or will be spawned; for a slot in backoff, when its worker died. */
  readonly startingSinceMs: readonly number[];
}

/**
 * Counts each slot once, but for latched and failing ones, which may never have a worker. `isFree`: whether the worker holds no call and
 * none is on its way to it.
 */
export function countWorkers(
  slots: readonly Slot[],
  isFree: (worker: WorkerHandle) => boolean,
  nowMs: number,
): CountedWorkers {
  const ready: ScaledWorker[] = [];
  const startingSinceMs: number[] = [];
  for (const slot of slots) {
    const { state, worker } = slot;
    if (slot.failure !== null) continue;
    if (worker?.state === 'ready' && state.name !== 'replacing') ready.push(asScaled(worker, isFree(worker)));
    else startingSinceMs.push(sinceMs(slot, nowMs));
  }
  return { ready, startingSinceMs };
}

/**
 * A worker that is frozen, or about to get a call, is not free: it counts as one that has just begun. One that runs several
 * calls at once counts as so many times as fast.
 */
function asScaled(worker: WorkerHandle, isFree: boolean): ScaledWorker {
  const { heldBatches, runningMs, places, isFrozen } = worker;
  if (worker.load === 0 && (isFrozen || !isFree))
    return { heldBatches: 1, runningMs: 0, isFrozen: isFrozen && isFree };
  return { heldBatches, runningMs: runningMs / places };
}

function sinceMs({ state, worker, lastDeath }: Slot, nowMs: number): number {
  if (state.name === 'backoff' && lastDeath !== null) return nowMs - (Date.now() - lastDeath.at.getTime());
  return worker === null || state.name === 'replacing' ? nowMs : nowMs - worker.uptimeMs;
}

/** Time until a worker is ready, if a start takes `startMs`: from the start that is nearest to its end, or from now. */
export function startLeftMs(slots: readonly Slot[], startMs: number, nowMs: number): number {
  const lefts = slots.map(({ state, worker }) => {
    if (state.name === 'latched') return startMs;
    if (state.name === 'backoff') return state.untilMs - nowMs + startMs;
    return worker === null || state.name === 'replacing' ? startMs : Math.max(0, startMs - worker.uptimeMs);
  });
  return lefts.length === 0 ? startMs : Math.min(...lefts);
}
