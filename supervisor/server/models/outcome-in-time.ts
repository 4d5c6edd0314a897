/** Bounds the wait for the workers of a change by the init timeout of their model. */
import { ServeError } from '../../../protocol/errors.js';
import { within } from '../../machine/limit-timer.js';
import type { Model } from '../../models/model.js';
import type { Models, Outcome } from '../../models/models.js';
import { SHORTEST_START_MS } from '../../options/resolve.js';

/** Resolves with the outcome of a change that starts workers, once `failure` resolves or the init timeout has passed. */
export async function outcomeInTime(
  registry: Models,
  model: Model,
  settled: Promise<Outcome>,
  failure = (ended: Promise<unknown>) => model.health.whenOneFails(ended),
): Promise<Outcome> {
  const limitMs = model.options.initTimeout;
  const { crew } = model;
  const target = crew.wanted;
  const ended = within(limitMs, settled);
  const error = await failure(ended);
  const { wanted } = crew;
  const ready = crew.ready.length;
  if (error !== null) return { result: 'failed', wanted, ready, error };
  const outcome = await ended;
  if (target > 0 && registry.described(model)?.isLeaving !== false)
    return { result: 'failed', wanted, ready, error: leftMistake(model) };
  const isCounted = model.sizing.bounds === null; // else its calls may have changed the number
  if (outcome !== null && outcome.wanted !== target && isCounted)
    return { result: 'unfinished', wanted, ready, error: null }; // it was scaled again since
  if (outcome !== null) return { ...outcome, result: outcome.result === 'done' ? 'done' : 'failed' };
  if (limitMs > SHORTEST_START_MS) return { result: 'unfinished', wanted, ready, error: null };
  return { result: 'failed', wanted, ready, error: new ServeError('SERVE_INIT_TIMEOUT') };
}

function leftMistake({ spec }: Model): ServeError {
  const message = `The model ${spec.name} was unregistered before its workers were ready.`;
  return new ServeError('SERVE_MODEL_NOT_FOUND', message);
}
