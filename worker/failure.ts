/** What became of a call whose app threw, or gave an error in place of an answer. */
import { ServeError, describeThrown } from '../protocol/errors.js';
import { isPredictionException, type PredictionException } from './api/mms/prediction-exception.js';
import { isOutOfMemory } from './outlook.js';

/** Never throws: anything may be thrown by an app. */
export function failureOf(thrown: unknown): ServeError {
  if (isOurs(thrown)) return thrown;
  const detail = describeThrown(thrown).stack;
  if (isPredictionException(thrown)) return predictionFailure(thrown, detail);
  const kind = isOutOfMemory(thrown) ? 'out-of-memory' : 'exception';
  return new ServeError('SERVE_INFERENCE_FAILED', undefined, { detail, kind });
}

function isOurs(thrown: unknown): thrown is ServeError {
  try {
    return thrown instanceof ServeError;
  } catch {
    return false; // a Proxy may refuse even this
  }
}

/** The app has written the message for its client. */
function predictionFailure(thrown: PredictionException, detail: string): ServeError {
  const { message } = describeThrown(thrown);
  return new ServeError('SERVE_INFERENCE_FAILED', message, {
    detail,
    kind: 'prediction',
    status: statusOf(thrown),
  });
}

function statusOf({ errorCode }: PredictionException): number {
  return Number.isInteger(errorCode) && errorCode >= 400 && errorCode <= 599 ? errorCode : 500;
}
