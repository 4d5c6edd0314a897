/** What came of a change that was asked of a model. */
import { ServeError } from '../../protocol/errors.js';
import type { Settled } from './model-health.js';

export interface Outcome {
  /**
   * `done`: as many workers are ready as were asked for. `partial`: only some. `failed`: none, or nothing could be begun.
   * `unfinished`: the time limit of the request passed first, and the change goes on; only where a request has a limit.
   */
  readonly result: 'done' | 'partial' | 'failed' | 'unfinished';
  readonly wanted: number;
  readonly ready: number;
  /** Why workers are missing; null if none is. */
  readonly error: ServeError | null;
}

/** `wanted`: what is told if nothing could be begun. */
export async function outcomeOf(wanted: number, change: () => Promise<Settled>): Promise<Outcome> {
  try {
    const settled = await change();
    const { ready, error } = settled;
    const result = ready >= settled.wanted ? 'done' : ready > 0 ? 'partial' : 'failed';
    return { result, wanted: settled.wanted, ready, error };
  } catch (thrown) {
    const error =
      thrown instanceof ServeError ? thrown : new ServeError('SERVE_INTERNAL', undefined, { cause: thrown });
    return { result: 'failed', wanted, ready: 0, error };
  }
}
