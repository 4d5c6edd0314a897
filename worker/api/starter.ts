/**
 * Starts a server for an app that serves itself. `index.ts` sets the function, because this folder may not import the
 * supervisor.
 */
import type { ProgramOptions } from '../../protocol/option-types.js';
import type { AppPlace } from './in-worker.js';
import type { TestServer } from './test-client.js';

/**
 * Options of `run` and of a Potassium app's `serve`, by the names of docs/options.md; durations are ms or have a unit.
 * @example
 * const options: AppServeOptions = { port: 8001, workers: 2, runTimeout: '30s' };
 * await run({ inference: () => 1, ...options });
 */
export type AppServeOptions = ProgramOptions;

/** `file` is the file that a worker imports; `place` selects one of its apps. */
export interface StartedApp {
  readonly file: string;
  readonly place: AppPlace;
}

export interface Starter {
  serve(app: StartedApp, options: AppServeOptions): Promise<void>;
  /** Resolves once a worker is ready. */
  startForTest(app: StartedApp, options: AppServeOptions): Promise<TestServer>;
}

let current: Starter | null = null;

export function setStarter(starter: Starter): void {
  current = starter;
}

export function starter(): Starter {
  if (current === null) throw new Error("import run from 'banana-serve'; this module cannot start a server");
  return current;
}

/** Returns the file for a worker to import, which `callingFile` found. @throws Error if there is none */
export function appFile(file: string | null): string {
  if (file !== null) return file;
  throw new Error('this app was created outside a file and cannot start a server; use banana-serve <file>');
}
