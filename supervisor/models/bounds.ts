/** Numbers of workers: bounds, and the table of how many workers a model gets on each occasion if not all is asked for. */
import { configError } from '../../protocol/errors.js';
import { scalesItself, type ModelOptions, type ModelSetting } from '../options/resolve.js';

/** Least and most workers; a number in between stays as it is. */
export interface WorkerBounds {
  readonly min: number;
  readonly max: number;
}

/** The facts on which the default bounds of a model depend. */
export interface BoundsFacts {
  /** The bounds within which it scales itself; null if its number of workers is fixed. */
  readonly own: WorkerBounds | null;
  /** The bounds that are set for this model of the store; null: none are. */
  readonly set: WorkerBounds | null;
  /** The number of its workers if nothing is asked for or set. @throws SERVE_CONFIG */
  readonly usualCount: () => number;
}

/**
 * The bounds of a model's number of workers. What is not asked for is as the model's own bounds say if it scales itself, else
 * as the table says for this occasion.
 */
export function boundsFor(
  occasion: keyof typeof FIXED,
  facts: BoundsFacts,
  asked: Partial<WorkerBounds> = {},
): WorkerBounds {
  return facts.own === null ? FIXED[occasion](asked, facts) : completed(asked, facts.own);
}

/** The bounds of a model whose number of workers is fixed, by the occasion on which they are decided. */
const FIXED = {
  /** The server starts with the model. */
  start: (_asked, { set, usualCount }) => set ?? exactly(usualCount()),

  /** A program scales it. */
  program({ min, max = min }, { usualCount }) {
    const count = min === undefined || max === undefined ? usualCount() : 0;
    return { min: min ?? Math.min(count, max ?? count), max: max ?? count };
  },

  /** A client registers it, and may name the number of its first workers. */
  registration: ({ min }, { set, usualCount }) =>
    min === undefined ? (set ?? exactly(usualCount())) : exactly(min),

  /** A client scales it. `max` can be less than `min`, which the caller refuses. */
  change: ({ min = 1, max = min }) => ({ min, max }),

  /** A client loads it from the store: there is at least one worker, whatever is set. */
  load(_asked, { set, usualCount }) {
    if (set !== null && set.min > 0) return set;
    const count = Math.max(1, usualCount());
    return { min: count, max: Math.max(count, set?.max ?? count) };
  },
} satisfies Record<string, (asked: Partial<WorkerBounds>, facts: BoundsFacts) => WorkerBounds>;

/**
 * Completes bounds of which some were left out: those are the own ones of the model, unless that contradicts what was asked.
 * Own ones that contradict each other stay so, for the caller to refuse.
 */
function completed(asked: Partial<WorkerBounds>, own: WorkerBounds): WorkerBounds {
  if (asked.min === undefined && asked.max === undefined) return own;
  const { min = Math.min(own.min, asked.max ?? own.min) } = asked;
  return { min, max: asked.max ?? Math.max(own.max, min) };
}

/**
 * The bounds within which a model scales itself, as the operator's options have them; null if its number of workers is fixed.
 * `usualCount`: its workers if nothing were given.
 */
export function ownBounds(
  options: Pick<ModelOptions, 'minWorkers' | 'maxWorkers' | 'idleTimeout'>,
  usualCount: () => number,
): WorkerBounds | null {
  if (!scalesItself(options)) return null;
  const { minWorkers, maxWorkers } = options;
  const usualMin = maxWorkers === null ? 0 : 1;
  const min = minWorkers ?? usualMin;
  return { min, max: maxWorkers ?? Math.max(min, usualCount()) };
}

/** The bounds that are set for a model of the store that would have `count` workers; null if none are. */
export function setBounds(setting: ModelSetting | null, count: number): WorkerBounds | null {
  if (setting === null || (setting.min ?? setting.max) === null) return null;
  const min = setting.min ?? Math.min(count, setting.max as number);
  return { min, max: setting.max ?? min };
}

/** Bounds that leave exactly this number. */
export function exactly(count: number): WorkerBounds {
  return { min: count, max: count };
}

/** The number of workers within the bounds that is nearest to `count`. */
export function countWithin({ min, max }: WorkerBounds, count: number): number {
  return Math.min(Math.max(count, min), max);
}

/** @throws SERVE_CONFIG */
export function checkBounds({ min, max }: WorkerBounds): void {
  for (const [name, count] of Object.entries({ min, max })) {
    if (!Number.isInteger(count) || count < 0 || count > MOST_WORKERS)
      throw configError(
        `scale: ${name} must be a whole number from 0 to ${MOST_WORKERS}, not ${String(count)}.`,
      );
  }
  if (max < min) throw configError(`scale: max (${max}) cannot be less than min (${min}).`);
}

/** The same as the most of `--workers`. */
const MOST_WORKERS = 1024;
