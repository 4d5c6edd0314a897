/** What became of a call whose app threw, or gave an error in place of an answer. */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { isPredictionException, type PredictionException } from '../api/mms/prediction-exception.js';
import { isOutOfMemory } from './outlook.js';

/** Never throws: anything may be thrown by an app. */
export function failureOf(thrown: unknown): ServeError {
  if (isServeError(thrown)) return thrown;
  const detail = describeThrown(thrown).stack;
  const prediction = isPredictionException(thrown) ? predictionFailure(thrown, detail) : null;
  if (prediction !== null) return prediction;
  const kind = isOutOfMemory(thrown) ? 'out-of-memory' : 'exception';
  return new ServeError('SERVE_INFERENCE_FAILED', undefined, { detail, kind });
}

/** Whether it is an error of the server's own. Never throws. */
export function isServeError(thrown: unknown): thrown is ServeError {
  try {
    return thrown instanceof ServeError;
  } catch {
    return false; // a Proxy may refuse even this
  }
}

/** The app has written the message for its client. Null if the error cannot say its status. */
function predictionFailure(thrown: PredictionException, detail: string): ServeError | null {
  const { message } = describeThrown(thrown);
  try {
    const status = statusOf(thrown);
    return new ServeError('SERVE_INFERENCE_FAILED', message, { detail, kind: 'prediction', status });
  } catch {
    return null; // it counts as any other error
  }
}

function statusOf({ errorCode }: PredictionException): number {
  return Number.isInteger(errorCode) && errorCode >= 400 && errorCode <= 599 ? errorCode : 500;
}
