/** `serve({ init, inference })`: the Banana functions of a file that starts itself. */
import { placeServed, serveInWorker } from './in-worker.js';
import { appFile, starter, type AppServeOptions } from './starter.js';
import { callingFile } from '../stack-frame.js';
import type { BananaApp } from './types.js';

/** An app, and options of its server beside it: `host`, `port` and the others of docs/options.md. */
export type ServedFunctions = BananaApp & AppServeOptions;

/** Starts a server of the functions. In a worker, where the same line runs again, it hands them over and its promise never settles. */
export function serveFunctions(given: ServedFunctions): Promise<void> {
  if (typeof given.inference !== 'function') {
    const what = `serve({ inference }) needs a function, not ${typeof given.inference}`;
    return Promise.reject(new TypeError(what));
  }
  const file = appFile(callingFile());
  const place = placeServed(given.inference, file);
  const inWorker = serveInWorker(given, place);
  if (inWorker !== null) return inWorker;
  const options: Record<string, unknown> = { ...given };
  for (const name of ['init', 'inference', 'shutdown', 'example', 'config']) delete options[name];
  return starter().serve({ file, place }, options);
}
