/** How an app that starts itself becomes a server. `index.ts` says how: nothing here may know the supervisor. */
import type { ProgramOptions } from '../../protocol/option-types.js';
import type { AppPlace } from './in-worker.js';
import type { TestServer } from './test-client.js';

/** Where and how `app.serve()` listens, by the names of docs/options.md; durations are ms or have a unit. */
export type AppServeOptions = ProgramOptions;

/** `file`: what a worker imports. `place`: which of its apps is meant. */
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
  if (current === null) throw new Error("import from 'banana-serve': nothing else can start a server");
  return current;
}

/** The file that a worker shall import, which is where `callingFile` found the app to be made or served. */
export function appFile(file: string | null): string {
  if (file !== null) return file;
  throw new Error('this app was made outside any file, and cannot start a server; use banana-serve <file>');
}
