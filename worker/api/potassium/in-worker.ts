/**
 * How `app.serve()` knows that it runs in a worker. On `globalThis`, under a registered symbol: a TypeScript app may be
 * given another instance of this module than the worker has.
 */
const IN_WORKER = Symbol.for('banana-serve.in-worker');

type Holder = { [IN_WORKER]?: (app: unknown) => void };

/** For the worker: `listener` gets every app that calls `serve()` from now on. */
export function onServe(listener: (app: unknown) => void): void {
  (globalThis as Holder)[IN_WORKER] = listener;
}

/** Hands the app to the worker that imports it. Returns false outside a worker. */
export function serveInWorker(app: unknown): boolean {
  const listener = (globalThis as Holder)[IN_WORKER];
  listener?.(app);
  return listener !== undefined;
}
