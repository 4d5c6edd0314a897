/**
 * The class of a Potassium app. It collects the definition of the app, which `adapters/potassium-app.ts` runs;
 * `serving.ts` starts the server.
 */
import { isReservedPath } from '../../../protocol/reserved-paths.js';
import { parseWebhookUrl } from '../../../protocol/webhooks.js';
import type { Route } from '../../../protocol/wire/messages.js';
import {
  RouteAlreadyInUseException,
  InvalidEndpointTypeException,
  DEFINITION,
  endpointOf,
  missing,
  type Background,
  type BackgroundOptions,
  type BatchHandler,
  type BatchRouteOptions,
  type Definition,
  type Endpoint,
  type GivenOptions,
  type Handler,
  type LegacyHandler,
  type RouteOptions,
  type WebSocketHandler,
} from './definition.js';
import {
  noteMade,
  placeMade,
  serveInWorker,
  appFile,
  starter,
  type AppPlace,
  type AppServeOptions,
} from '../serving.js';
import {
  isSchema,
  type Returned,
  type SchemaInput,
  type SchemaOutput,
  type StandardSchema,
} from '../standard-schema.js';
import type { InitContext } from '../types.js';
import { testClientOf, type TestClient } from '../test-client.js';
import { callingFile } from '../../process/stack-frame.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- authors declare what their routes take and give */

/** Excludes promises, which otherwise would count as the object that `init` returns. */
interface NoPromise {
  readonly then?: never;
}

/**
 * Options of `new Potassium`.
 * @example
 * const options: PotassiumOptions = { numWorkers: 2 };
 * const app = new Potassium('my-app', options);
 */
export interface PotassiumOptions {
  /**
   * Number of workers on a machine without GPUs if the app is started with `app.serve()`; `--workers` on the command
   * line.
   */
  readonly numWorkers?: number;
  readonly experimentalNumWorkers?: number;
  readonly mode?: 'serve' | 'optimize';
}

/**
 * An app of routes: `init` makes its context, and each route gets a function.
 * @example
 * const app = new Potassium('my-app').init(() => ({ model: (text: string) => text.toUpperCase() }));
 * app.handler('/', (context, request) => new Response({ json: { answer: context.model(request.json.prompt) } }));
 * export default app;
 */
export class Potassium<Context extends object = any> {
  readonly name: string;
  readonly options: PotassiumOptions;
  /** Models that were passed to `optimize` in that mode. */
  readonly toOptimize: unknown[] = [];
  readonly [DEFINITION]: Definition;
  /** The file that created the app; a test that uses the app may be another file. */
  readonly #madeIn = callingFile();
  readonly #place: AppPlace;

  constructor(name: string, options: PotassiumOptions = {}) {
    this.name = name;
    this.options = options;
    this[DEFINITION] = {
      name,
      endpoints: new Map(),
      init: null,
      context: {},
      hasContext: false,
      resultWebhook: null,
    };
    this.#place = placeMade(this.#madeIn ?? '');
    noteMade(this, this.#place);
  }

  /**
   * Runs once per worker, before its first call. It gets the worker's number, and the context of every app's `init`:
   * metrics, log, device. Must return the app's context, an object, unless it called `setCache`. Returns the app with
   * the context's type: `const app = new Potassium('x').init(...)`.
   */
  init<Returned extends object & NoPromise>(
    fn: (workerNum: number, ctx: InitContext) => Returned | Promise<Returned>,
  ): Potassium<Returned>;
  init(fn: (workerNum: number, ctx: InitContext) => void | Promise<void>): this;
  init(fn: (workerNum: number, ctx: InitContext) => unknown): unknown {
    assertFunction(fn, 'init');
    this[DEFINITION].init = fn;
    return this;
  }

  /**
   * Defines a route whose caller waits for the `Response`. `handler<In, Out>(...)` declares the types of its JSON.
   * @throws RouteAlreadyInUseException
   */
  handler<Json = any, Output = unknown>(
    route: string,
    fn: Handler<Context, Json, Output>,
    options?: RouteOptions,
  ): Handler<Context, Json, Output>;
  /** Returns a function that takes the handler: `app.handler('/x')(fn)`. */
  handler(route?: string, options?: RouteOptions): <F extends Handler<Context>>(fn: F) => F;
  /** Defines a route with schemas: its handler gets what `input` returns, and its client what `output` does. */
  handler<In extends StandardSchema = StandardSchema, Out extends StandardSchema = StandardSchema>(
    route: string,
    options: RouteOptions<In, Out> & { readonly batch?: false },
    fn: Handler<Context, SchemaOutput<In>, Returned<SchemaInput<Out>>>,
  ): Handler<Context, SchemaOutput<In>, Returned<SchemaInput<Out>>>;
  handler<In extends StandardSchema = StandardSchema, Out extends StandardSchema = StandardSchema>(
    route: string,
    options: BatchRouteOptions<In, Out>,
    fn: BatchHandler<Context, SchemaOutput<In>, Returned<SchemaInput<Out>>>,
  ): BatchHandler<Context, SchemaOutput<In>, Returned<SchemaInput<Out>>>;
  /** Defines a route whose calls run together: `app.handler('/x', { batch: true }, (context, requests) => [...])`. */
  handler<Json = any, Output = unknown>(
    route: string,
    options: BatchRouteOptions,
    fn: BatchHandler<Context, Json, Output>,
  ): BatchHandler<Context, Json, Output>;
  handler(route: string, options: BatchRouteOptions): <F extends BatchHandler<Context>>(fn: F) => F;
  /**
   * Defines the only handler of an app of Potassium up to 0.0.4, at `/`; a later call replaces it.
   * @throws RouteAlreadyInUseException if a route has the path
   */
  handler<Json = any>(fn: LegacyHandler<Context, Json>): LegacyHandler<Context, Json>;
  handler(first: unknown = '/', second?: unknown, third?: unknown): unknown {
    if (typeof first === 'function') {
      const { input, output } = (second ?? {}) as Readonly<Record<'input' | 'output', unknown>>;
      if (isSchema(input) || isSchema(output))
        throw new TypeError(
          "app.handler(fn) takes no schema: name the route, as in app.handler('/', { input }, fn)",
        );
      if (this.#endpoints.get('/')?.legacy === false) throw new RouteAlreadyInUseException('/');
      const endpoint = endpointOf('handler', '/', { raw: true }, first as Endpoint['run']);
      this.#endpoints.set('/', { ...endpoint, legacy: true });
      return first;
    }
    return this.#register('handler', first, second, third);
  }

  /** Defines a route that acknowledges the call at once and runs it afterwards. @throws RouteAlreadyInUseException */
  background<Json = any>(
    route: string,
    fn: Background<Context, Json>,
    options?: BackgroundOptions,
  ): Background<Context, Json>;
  background<In extends StandardSchema>(
    route: string,
    options: BackgroundOptions<In> & { readonly input: In },
    fn: Background<Context, SchemaOutput<In>>,
  ): Background<Context, SchemaOutput<In>>;
  background(route?: string, options?: BackgroundOptions): <F extends Background<Context>>(fn: F) => F;
  background(route: unknown = '/', second?: unknown, third?: unknown): unknown {
    return this.#register('background', route, second, third);
  }

  /**
   * Defines a WebSocket route, for `new WebSocket('ws://host/route')`: `for await (const message of request.ws) ...`.
   * @throws RouteAlreadyInUseException
   */
  websocket(route: string, fn: WebSocketHandler<Context>): WebSocketHandler<Context>;
  websocket(route?: string): <F extends WebSocketHandler<Context>>(fn: F) => F;
  websocket(route: unknown = '/', second?: unknown, third?: unknown): unknown {
    return this.#register('websocket', route, second, { ...(third as object | undefined), raw: true });
  }

  /** @deprecated The name of `background` in Potassium 0.0.5 to 0.0.8. */
  asyncHandler(route = '/', options: BackgroundOptions = {}): <F extends Background<Context>>(fn: F) => F {
    return this.background(route, options);
  }

  /** Posts the JSON answer of every successful handler to this URL. The last call wins. */
  resultWebhook(url: string | { readonly url: string }): <F>(fn: F) => F {
    this[DEFINITION].resultWebhook = parseWebhookUrl(typeof url === 'string' ? url : url.url).href;
    return (fn) => fn;
  }

  /** Replaces this worker's context. */
  setCache(context: Context): void {
    assertObject(context, 'setCache()');
    this[DEFINITION].context = context;
    this[DEFINITION].hasContext = true;
  }

  /** Returns this worker's context itself: changes stay for later calls of the same worker. */
  getCache(): Context {
    return this[DEFINITION].context as Context;
  }

  setContext(context: Context): void {
    this.setCache(context);
  }

  getContext(): Context {
    return this.getCache();
  }

  /** Registers a model in mode `optimize`; does nothing otherwise. */
  optimize(model: unknown): void {
    if (this.options.mode === 'optimize') this.toOptimize.push(model);
  }

  /**
   * Serves the file that created the app from this process, as `banana-serve ./app.ts` would, and resolves when the
   * server has ended, with `process.exitCode` set. A worker runs that file again and takes the app that it creates;
   * this line may be behind a guard that is false in a worker.
   */
  serve(options?: AppServeOptions): Promise<void>;
  serve(host?: string, port?: number): Promise<void>;
  serve(first?: string | AppServeOptions, port?: number): Promise<void> {
    const inWorker = serveInWorker(this, this.#place);
    if (inWorker !== null) return inWorker;
    const given = typeof first === 'object' ? first : withoutUndefined({ host: first, port });
    // The file of this line, which need not be the one that created the app. A worker that runs it creates the app
    // again, which is enough: behind a guard such as `require.main === module` this line does not run there.
    const file = appFile(callingFile());
    return starter().serve({ file, place: this.#place }, { ...this.#workers(), ...given });
  }

  /** Starts a server of this app for a test, on a free port; init runs for real, in a worker. Close it at the end. */
  testClient(options: AppServeOptions = {}): Promise<TestClient> {
    const inWorker = serveInWorker(this, this.#place); // the file that created the app is the test
    if (inWorker !== null) return inWorker;
    const file = appFile(this.#madeIn);
    return starter()
      .startForTest({ file, place: this.#place }, { ...this.#workers(), ...options })
      .then(testClientOf);
  }

  #workers(): AppServeOptions {
    const { numWorkers, experimentalNumWorkers } = this.options;
    return withoutUndefined({ workers: numWorkers ?? experimentalNumWorkers });
  }

  get #endpoints(): Map<string, Endpoint> {
    return this[DEFINITION].endpoints;
  }

  /** The function may come before its options, after them, or in a later call. */
  #register(kind: Route['kind'], given: unknown, second: unknown, third?: unknown): unknown {
    if (typeof given !== 'string') throw new InvalidEndpointTypeException();
    const path = this.#freePath(given);
    const fn = [second, third].find((arg) => typeof arg === 'function') as Endpoint['run'] | undefined;
    const options = ([second, third].find((arg) => typeof arg === 'object' && arg !== null) ??
      {}) as GivenOptions;
    // The route is taken from now on even without its function, as with Potassium's decorator.
    this.#endpoints.set(path, endpointOf(kind, path, options, fn ?? missing(path)));
    if (fn !== undefined) return fn;
    return (later: Endpoint['run']) => {
      assertFunction(later, `${kind}('${path}')`);
      this.#endpoints.set(path, endpointOf(kind, path, options, later));
      return later;
    };
  }

  #freePath(route: string): string {
    const path = route.startsWith('/') ? route : `/${route}`;
    if (/[?#]/.test(path))
      throw new TypeError(`a route must be a path without ? and #, not ${JSON.stringify(path)}`);
    if (isReservedPath(path)) throw new RouteAlreadyInUseException(path, " is the server's own");
    if (this.#endpoints.has(path)) throw new RouteAlreadyInUseException(path);
    return path;
  }
}

function withoutUndefined(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function assertFunction(fn: unknown, what: string): void {
  if (typeof fn !== 'function') throw new TypeError(`${what} needs a function, not ${typeof fn}`);
}

function assertObject(value: unknown, what: string): void {
  if (typeof value !== 'object' || value === null) throw new TypeError(`${what} needs an object`);
}
