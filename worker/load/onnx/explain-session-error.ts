/** Explains why onnxruntime cannot load a model, in plain words. */
import { describeThrown } from '../../../protocol/errors.js';
import { AppLoadError } from '../explain-load-error.js';

export function explainSessionError(path: string, thrown: unknown): AppLoadError {
  const { message } = describeThrown(thrown);
  return new AppLoadError(`${path}: ${message}`, { cause: thrown });
}
