/** `serve({ init, inference })`: serves the Banana functions of a file from the file itself. */
import { placeServed, serveInWorker } from './in-worker.js';
import { appFile, starter, type AppServeOptions } from './starter.js';
import { callingFile } from '../process/stack-frame.js';
import type { BananaApp, BananaBatchApp } from './types.js';

/** The functions of an app together with options of its server: `host`, `port` and the others of docs/options.md. */
export type ServedFunctions = (BananaApp | BananaBatchApp) & AppServeOptions;

/**
 * Starts a server of the functions. In a worker, which runs the same line, it passes them to the worker and its promise
 * never settles.
 */
export function serveFunctions(given: ServedFunctions): Promise<void> {
  const { inference, inferenceBatch } = given as Partial<BananaApp>;
  const identity: unknown = inference ?? inferenceBatch;
  if (typeof identity !== 'function') {
    const what = `serve({ inference }) needs a function, not ${typeof identity}`;
    return Promise.reject(new TypeError(what));
  }
  const file = appFile(callingFile());
  const place = placeServed(identity, file);
  const inWorker = serveInWorker(given, place);
  if (inWorker !== null) return inWorker;
  const options: Record<string, unknown> = { ...given };
  for (const name of ['init', 'inference', 'inferenceBatch', 'shutdown', 'example', 'config'])
    delete options[name];
  return starter().serve({ file, place }, options);
}
