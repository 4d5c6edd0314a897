/** The user's onnxruntime-node, which the runtime of the front has found. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
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
    // Of what it prints outside of sessions, only the reason is not thrown why a provider has no library.
    onnxruntime.env.logLevel = 'error';
    return onnxruntime;
  } catch (cause) {
    const { message } = cause as Error;
    throw new AppLoadError(
      `${path}: onnxruntime-node cannot be loaded: ${message} Install it again on this machine: npm install onnxruntime-node`,
      { cause },
    );
  }
}

/** The folder of the native libraries of the package whose main file this is (`dist/index.js`). */
export function librariesOf(path: string): string {
  return join(dirname(path), `../bin/napi-v6/${process.platform}/${process.arch}`);
}
