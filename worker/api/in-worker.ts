/**
 * How an app that starts itself knows that it runs in a worker, and how the worker knows which of a file's apps is meant.
 * They meet on `globalThis`, under registered symbols, because a TypeScript app may be given another instance of this
 * module than the worker has.
 */
const IN_WORKER = Symbol.for('banana-serve.in-worker');
const COUNTS = Symbol.for('banana-serve.app-counts');
const SERVED = Symbol.for('banana-serve.served-apps');

/** The worker that imports the app. */
export interface ImportingWorker {
  /** The file made an app, which it may never serve. */
  onMade(app: unknown, place: AppPlace): void;
  /** The app asked to be served. */
  onServe(app: unknown, place: AppPlace): void;
  /** The file waits for the server's end: its import will never be done. */
  onAwaited(): void;
}

/**
 * Says which app is meant: `made 2 /tests/app.ts` is the second Potassium that this file makes, `served 1 …` the first that it serves.
 * The same in every process that runs the file, as long as the file does the same there.
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

/** Returns the place of one more app that this file makes. */
export function placeMade(file: string): AppPlace {
  return nextPlace('made', file);
}

/** Returns the place of an app that this file serves, the same for every try to serve the same app. `identity`: the object by which an app is known again. */
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

/** Tells the worker that imports the file, if there is one. */
export function noteMade(app: unknown, place: AppPlace): void {
  (globalThis as Holder)[IN_WORKER]?.onMade(app, place);
}

/** Hands the app to the worker that imports it; what is returned never settles. Null outside a worker. */
export function serveInWorker(app: unknown, place: AppPlace): Promise<never> | null {
  const worker = (globalThis as Holder)[IN_WORKER];
  if (worker === undefined) return null;
  worker.onServe(app, place);
  return new ServerEndInWorker(() => worker.onAwaited());
}

/** A promise that never settles: the lines after `await app.serve()` are for after the server's end, which never comes in a worker. */
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
