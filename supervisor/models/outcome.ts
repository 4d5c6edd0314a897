/** The outcome of a change to a model. Register, scale, replace and unregister all end in this shape. */
import { ServeError, type ErrorCode } from '../../protocol/errors.js';

/**
 * The outcome of a change to a model.
 * @example
 * const isDone = ({ result, ready, wanted }: Outcome) => result === 'done' && ready === wanted;
 */
export interface Outcome {
  /**
   * `done`: as many workers are ready as were asked for. `partial`: only some. `failed`: none, or nothing could be begun.
   * `unfinished`: the time limit of the request passed first, and the change goes on; only where a request has a limit.
   */
  readonly result: 'done' | 'partial' | 'failed' | 'unfinished';
  readonly wanted: number;
  readonly ready: number;
  /** The reason why workers are missing; null if none are. */
  readonly error: ServeError | null;
}

/** The outcome of a change that has ended with `ready` of `wanted` workers. */
export function outcomeOf(wanted: number, ready: number, error: ServeError | null): Outcome {
  const result = ready >= wanted ? 'done' : ready > 0 ? 'partial' : 'failed';
  return { result, wanted, ready, error };
}

/** A time limit has passed before the outcome was known. */
export const UNFINISHED: Outcome = { result: 'unfinished', wanted: 0, ready: 0, error: null };

/** Runs a change and never rejects. `wanted` is reported if the change could not be begun. */
export async function outcomeOrFailure(wanted: number, change: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await change();
  } catch (thrown) {
    const error =
      thrown instanceof ServeError ? thrown : new ServeError('SERVE_INTERNAL', undefined, { cause: thrown });
    return { result: 'failed', wanted, ready: 0, error };
  }
}

/** Whether workers could not start; false if the server ends or the model was unregistered by another request. */
export function isStartFailure({ result, error }: Outcome): boolean {
  return result === 'failed' && (error === null || !NO_START_FAILURE.has(error.code));
}

const NO_START_FAILURE: ReadonlySet<ErrorCode> = new Set(['SERVE_SHUTTING_DOWN', 'SERVE_MODEL_NOT_FOUND']);
