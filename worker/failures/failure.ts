/** Turns the error of an app, thrown or returned, into the failure of its call. */
import { ServeError, describeThrown } from '../../protocol/errors.js';
import { MAX_TEXT_CHARS } from '../../protocol/wire/limits.js';
import type { Thrown } from '../../protocol/wire/messages.js';
import {
  isErrorStatus,
  isHttpError,
  isPredictionException,
  type HttpError,
  type PredictionException,
} from '../api/http-error.js';
import { inputsOf, invalidInputOf, issuesWithin } from './invalid-input.js';
import { stackOfApp } from '../process/stack-frame.js';
import { isOutOfMemory } from './outlook.js';

/** `input`: what the app got. Never throws, because an app may throw anything. */
export function failureOf(thrown: unknown, input?: unknown): ServeError {
  if (isServeError(thrown)) return thrown;
  const refused = invalidInputOf(thrown, inputsOf(input));
  if (refused !== null) return refused;
  const detail = stackOfApp(describeThrown(thrown).stack);
  const isForClient = isHttpError(thrown) || isPredictionException(thrown);
  const forClient = isForClient ? failureForClient(thrown, detail) : null;
  if (forClient !== null) return forClient;
  const kind = isOutOfMemory(thrown) ? 'out-of-memory' : 'exception';
  return new ServeError('SERVE_INFERENCE_FAILED', undefined, { detail, kind });
}

/** Describes what the app threw to a caller that is a program. Never throws. */
export function thrownAsText(thrown: unknown): Thrown {
  const { message, stack } = describeThrown(thrown);
  let name = 'Error';
  try {
    if (thrown instanceof Error) name = thrown.name;
  } catch {
    // a getter of the app threw
  }
  const cut = (text: unknown): string => String(text).slice(0, MAX_TEXT_CHARS);
  return { name: cut(name), message: cut(message), stack: cut(stackOfApp(stack)) };
}

/** Whether it is an error of the server itself. Never throws. */
export function isServeError(thrown: unknown): thrown is ServeError {
  try {
    return thrown instanceof ServeError;
  } catch {
    return false; // a Proxy may refuse even this
  }
}

/** Returns the failure with the app's status and message; null if the status cannot be read, or is not one of an error. */
function failureForClient(thrown: HttpError | PredictionException, detail: string): ServeError | null {
  const { message } = describeThrown(thrown);
  try {
    if (isPredictionException(thrown)) {
      const { errorCode } = thrown;
      const status = isErrorStatus(errorCode) ? errorCode : 500;
      return new ServeError('SERVE_INFERENCE_FAILED', message, { detail, kind: 'prediction', status });
    }
    const { status } = thrown;
    if (!isErrorStatus(status)) return null;
    const issues = issuesWithin(thrown.issues);
    return new ServeError('SERVE_HTTP_ERROR', message || undefined, { detail, status, issues });
  } catch {
    return null; // it counts as any other error
  }
}
