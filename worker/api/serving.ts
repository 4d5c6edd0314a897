/**
 * An app that serves itself. Outside a worker it starts a server, by a function that `index.ts` sets, because this folder may
 * not import the supervisor. In a worker it tells that which of a file's apps is meant, and starts none. The two
 * communicate over `globalThis`, under registered symbols, because a TypeScript app may load another instance of this
 * module than the worker.
 */
import type { ProgramOptions } from '../../protocol/option-types.js';
import type { TestServer } from './test-client.js';

const IN_WORKER = Symbol.for('banana-serve.in-worker');
const COUNTS = Symbol.for('banana-serve.app-counts');
const SERVED = Symbol.for('banana-serve.served-apps');

/** The worker that imports the app. */
interface ImportingWorker {
  /** The file created an app, which it may never serve. */
  onMade(app: unknown, place: AppPlace): void;
  /** `serve()` was called for the app. */
  onServe(app: unknown, place: AppPlace): void;
  /** The file awaits the server's end, so its import will never end. */
  onAwaited(): void;
}

/**
 * Identifies an app: `made 2 /tests/app.ts` is the second Potassium that this file creates, `served 1 …` the first that
 * it serves. The same in every process that runs the file, if the file behaves the same there.
 */
export type AppPlace = string;

type Holder = {
  [IN_WORKER]?: ImportingWorker;
  [COUNTS]?: Map<string, number>;
  [SERVED]?: WeakMap<object, AppPlace>;
};

export function setImportingWorker(worker: ImportingWorker): void {
  (globalThis as Holder)[IN_WORKER] = worker;
}

/** Returns the place of one more app that this file creates. */
export function placeMade(file: string): AppPlace {
  return nextPlace('made', file);
}

/**
 * Returns the place of an app that this file serves; the same for every attempt to serve the same app. `identity` is
 * the object that identifies the app.
 */
export function placeServed(identity: object, file: string): AppPlace {
  const places = ((globalThis as Holder)[SERVED] ??= new WeakMap<object, AppPlace>());
  const place = places.get(identity) ?? nextPlace('served', file);
  places.set(identity, place);
  return place;
}

function nextPlace(verb: 'made' | 'served', file: string): AppPlace {
  const counts = ((globalThis as Holder)[COUNTS] ??= new Map<string, number>());
  const key = `${verb} ${file}`;
  const nth = (counts.get(key) ?? 0) + 1;
  counts.set(key, nth);
  return `${verb} ${nth} ${file}`;
}

/** Passes a created app to the worker that imports the file, if there is one. */
export function noteMade(app: unknown, place: AppPlace): void {
  (globalThis as Holder)[IN_WORKER]?.onMade(app, place);
}

/** Passes the app to the worker that imports it; the returned promise never settles. Null outside a worker. */
export function serveInWorker(app: unknown, place: AppPlace): Promise<never> | null {
  const worker = (globalThis as Holder)[IN_WORKER];
  if (worker === undefined) return null;
  worker.onServe(app, place);
  return new ServerEndInWorker(() => worker.onAwaited());
}

/**
 * A promise that never settles: the lines after `await app.serve()` run after the server's end, which never comes in a
 * worker.
 */
class ServerEndInWorker extends Promise<never> {
  readonly #onAwaited: () => void;

  constructor(onAwaited: () => void) {
    super(() => {});
    this.#onAwaited = onAwaited;
  }

  /** Promises that are derived from this one are plain promises. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  override then: Promise<never>['then'] = (onFulfilled, onRejected) => {
    this.#onAwaited();
    return super.then(onFulfilled, onRejected);
  };
}

/**
 * Options of `run` and of a Potassium app's `serve`, by the names of docs/options.md; durations are ms or have a unit.
 * @example
 * const options: AppServeOptions = { port: 8001, workers: 2, runTimeout: '30s' };
 * await run({ inference: () => 1, ...options });
 */
export type AppServeOptions = ProgramOptions;

/** `file` is the file that a worker imports; `place` selects one of its apps. */
interface StartedApp {
  readonly file: string;
  readonly place: AppPlace;
}

interface Starter {
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
