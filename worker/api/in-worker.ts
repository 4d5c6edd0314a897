/**
 * How an app that starts itself knows that it runs in a worker. On `globalThis`, under a registered symbol: a TypeScript
 * app may be given another instance of this module than the worker has.
 */
const IN_WORKER = Symbol.for('banana-serve.in-worker');

/** The worker that imports the app. */
export interface ImportingWorker {
  /** The app asked to be served. */
  onServe(app: unknown): void;
  /** The file waits for the server's end: its import will never be done. */
  onAwaited(): void;
}

type Holder = { [IN_WORKER]?: ImportingWorker };

export function setImportingWorker(worker: ImportingWorker): void {
  (globalThis as Holder)[IN_WORKER] = worker;
}

/** Hands the app to the worker that imports it; what is returned never settles. Null outside a worker. */
export function serveInWorker(app: unknown): Promise<never> | null {
  const worker = (globalThis as Holder)[IN_WORKER];
  if (worker === undefined) return null;
  worker.onServe(app);
  return new ServerEndInWorker(() => worker.onAwaited());
}

/** The lines after `await app.serve()` are for after the server's end, which never comes in a worker. */
class ServerEndInWorker extends Promise<never> {
  readonly #onAwaited: () => void;

  constructor(onAwaited: () => void) {
    super(() => {});
    this.#onAwaited = onAwaited;
  }

  /** Plain promises for whatever is derived from this one. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  override then: Promise<never>['then'] = (onFulfilled, onRejected) => {
    this.#onAwaited();
    return super.then(onFulfilled, onRejected);
  };
}
