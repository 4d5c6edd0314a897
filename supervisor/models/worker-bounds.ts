/** Bounds of the number of workers of a model. */
import { configError } from '../../protocol/errors.js';

/** Least and most workers; a number in between stays as it is. */
export interface WorkerBounds {
  readonly min: number;
  readonly max: number;
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
