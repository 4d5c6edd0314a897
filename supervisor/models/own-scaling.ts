/** The bounds of a model that scales by itself, as its operator's options have them. */
import { scalesItself, type ModelOptions } from '../options/resolve.js';
import type { ScalingRules } from '../scaling/policy.js';
import type { WorkerBounds } from './worker-bounds.js';

type ScalingOptions = Pick<
  ModelOptions,
  'minWorkers' | 'maxWorkers' | 'idleTimeout' | 'targetWait' | 'batchSize'
>;

/** The model's own bounds; null if it does not scale by itself. `usualCount`: its workers if nothing were given. */
export function ownBounds(options: ScalingOptions, usualCount: () => number): WorkerBounds | null {
  if (!scalesItself(options)) return null;
  const { minWorkers, maxWorkers } = options;
  const usualMin = maxWorkers === null ? 0 : 1;
  const min = minWorkers ?? usualMin;
  return { min, max: maxWorkers ?? Math.max(min, usualCount()) };
}

/** Completes bounds of which some were left out: those are the own ones of the model, unless that contradicts what was asked. */
export function completed(asked: Partial<WorkerBounds>, own: WorkerBounds): WorkerBounds {
  const { min = Math.min(own.min, asked.max ?? own.min) } = asked;
  return { min, max: asked.max ?? Math.max(own.max, min) };
}

export function rulesOf(options: ScalingOptions, { min, max }: WorkerBounds): ScalingRules {
  const { idleTimeout, targetWait, batchSize } = options;
  return { min, max, idleTimeoutMs: idleTimeout ?? USUAL_IDLE_MS, targetWaitMs: targetWait, batchSize };
}

/** The default of `--idle-timeout`. */
const USUAL_IDLE_MS = 60_000;
