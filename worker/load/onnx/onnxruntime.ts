/** The user's onnxruntime-node, which the runtime of the front has found. */
import { createRequire } from 'node:module';
import type * as Onnxruntime from 'onnxruntime-node';
import { AppLoadError } from '../explain-load-error.js';

export type { Onnxruntime };

/**
 * Loads the package. Afterwards this process has no `Float16Array`, with which inputs of float16 fail on Node 24 and newer
 * ("not enough space"); no code of a user runs here. @throws AppLoadError
 */
export function requireOnnxruntime(path: string): typeof Onnxruntime {
  delete (globalThis as { Float16Array?: unknown }).Float16Array;
  try {
    const onnxruntime = createRequire(import.meta.url)(path) as typeof Onnxruntime;
    onnxruntime.env.logLevel = 'fatal'; // every error is also thrown, and then explained
    return onnxruntime;
  } catch (cause) {
    const { message } = cause as Error;
    throw new AppLoadError(
      `${path}: onnxruntime-node cannot be loaded: ${message} Install it again on this machine: npm install onnxruntime-node`,
      { cause },
    );
  }
}
