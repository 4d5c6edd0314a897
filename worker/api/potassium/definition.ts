/** The definition of an app: its routes and functions, with their types. `potassium.ts` collects it. */
import type { Route } from '../../../protocol/wire/messages.js';
import { parseWebhookUrl } from '../../../protocol/webhooks.js';
import { inputWishes, repeatOptions, type InputWishes, type RepeatOptions } from '../route-options.js';
import { isSchema, type RouteSchemas, type StandardSchema } from '../standard-schema.js';
import type { InitContext } from '../types.js';
import type { Request, WebSocketRequest } from './request.js';
import type { Response } from './response.js';

/**
 * The key of an app's definition, for the adapter. A registered symbol, because the app may have loaded another
 * instance of this module.
 */
export const DEFINITION = Symbol.for('banana-serve.potassium.definition');

/* eslint-disable @typescript-eslint/no-explicit-any -- authors declare what their routes take and give */

/**
 * Answers a call. `context` is the result of `init`, the same object for all calls of one worker.
 * @example
 * const answer: Handler<{ calls: number }> = (context) => new Response({ json: context.calls });
 */
export type Handler<Context, Json = any, Output = any> = (
  context: Context,
  request: Request<Json>,
) => Response<NoInfer<Output>> | Promise<Response<NoInfer<Output>>>;

/**
 * The entry of one call in the result of a batch handler. An Error fails that call alone.
 * @example
 * const entry: BatchEntry = new Error('this call alone fails');
 */
export type BatchEntry<Output = any> = Response<Output> | Error | Promise<Response<Output> | Error>;

/**
 * Answers the calls of a batch: returns one entry for each request, in their order.
 * @example
 * const answers: BatchHandler<object> = (_context, requests) =>
 *   requests.map(({ json }) => new Response({ json: { doubled: 2 * json } }));
 * app.handler('/doubled', { batch: true }, answers);
 */
export type BatchHandler<Context, Json = any, Output = any> = (
  context: Context,
  requests: readonly Request<Json>[],
) => readonly BatchEntry<NoInfer<Output>>[] | Promise<readonly BatchEntry<NoInfer<Output>>[]>;

/**
 * Runs after its caller got the acknowledgement; the result is stored for `GET /_k/jobs/:id`.
 * @example
 * const train: Background<{ steps: number }> = async (context, request) => {
 *   for (let step = 1; step <= context.steps; step += 1) request.progress(step / context.steps);
 * };
 */
export type Background<Context, Json = any> = (context: Context, request: Request<Json>) => unknown;

/**
 * Serves one client and occupies the worker until it returns, which closes the connection.
 * @example
 * const greet: WebSocketHandler<object> = (_context, { ws }) => ws.send('hello');
 */
export type WebSocketHandler<Context> = (context: Context, request: WebSocketRequest) => unknown;

/**
 * A handler of Potassium up to 0.0.4: JSON in, JSON out.
 * @example
 * const answer: LegacyHandler<object> = (_cache, jsonIn) => ({ out: jsonIn.prompt });
 */
export type LegacyHandler<Context, Json = any> = (cache: Context, jsonIn: Json) => unknown;

/**
 * Options of a route.
 * @example
 * app.handler('/upload', (_context, { body }) => new Response({ json: body.length }), { raw: true });
 */
export interface RouteOptions<In extends StandardSchema = any, Out extends StandardSchema = any>
  extends RepeatOptions, RouteSchemas<In, Out> {
  /** Accepts any body by its content type (bytes, MessagePack, multipart), not only JSON. */
  readonly raw?: boolean;
  /**
   * Accepts everything that `raw` does, and a form (`application/x-www-form-urlencoded`) as an object of fields; a
   * repeated field is an array.
   */
  readonly forms?: boolean;
  /** Accepts everything that `raw` does, and `text/plain` or other text as a string. */
  readonly text?: boolean;
}

/**
 * The route's function takes batches of requests, of at most `--batch-size`.
 * @example
 * const options: BatchRouteOptions = { batch: true, repeatable: true };
 */
export interface BatchRouteOptions<
  In extends StandardSchema = any,
  Out extends StandardSchema = any,
> extends RouteOptions<In, Out> {
  readonly batch: true;
}

/**
 * Options of a background route.
 * @example
 * app.background('/train', () => {}, { resultWebhook: 'https://example.com/trained' });
 */
export interface BackgroundOptions<In extends StandardSchema = any> extends Omit<RouteOptions<In>, 'output'> {
  /** The URL to which the result is posted. */
  readonly resultWebhook?: string;
}

export interface Endpoint {
  readonly kind: Route['kind'];
  readonly schemas: RouteSchemas | undefined;
  readonly input: Route['input'];
  readonly wishes: InputWishes;
  readonly legacy: boolean;
  /** If true, `run` takes an array of requests and returns an array of entries. */
  readonly batch: boolean;
  readonly webhook: string | null;
  readonly repeat: RepeatOptions;
  readonly run: (context: any, request: any) => unknown;
}

/** The routes and functions that an app has defined so far. */
export interface Definition {
  readonly name: string;
  readonly endpoints: Map<string, Endpoint>;
  init: ((workerNum: number, ctx: InitContext) => unknown) | null;
  context: object;
  /** True if `setCache` was called, so that `init` need not return anything. */
  hasContext: boolean;
  resultWebhook: string | null;
}

/** The given options of any kind of route. */
export type GivenOptions = RouteOptions & BackgroundOptions & { readonly batch?: boolean };

/** @throws TypeError if an option has a wrong value */
export function endpointOf(
  kind: Route['kind'],
  path: string,
  options: GivenOptions,
  run: Endpoint['run'],
): Endpoint {
  const { batch = false } = options;
  if (typeof batch !== 'boolean') throw new TypeError(`${kind}('${path}'): batch must be true or false`);
  if (batch && kind !== 'handler')
    throw new TypeError(`${kind}('${path}'): only a handler can take calls in a batch`);
  const schemas = schemasOf(kind, path, options);
  const wishes = inputWishes({ ...options }, `${kind}('${path}')`);
  const input = options.raw === true || wishes.forms || wishes.text ? 'any' : 'json';
  const repeat = repeatOptions({ ...options }, `${kind}('${path}')`);
  const webhook = options.resultWebhook === undefined ? null : parseWebhookUrl(options.resultWebhook).href;
  return { kind, schemas, input, wishes, legacy: false, batch, webhook, repeat, run };
}

function schemasOf(
  kind: Route['kind'],
  path: string,
  { input, output }: RouteSchemas,
): RouteSchemas | undefined {
  for (const [name, schema] of Object.entries({ input, output })) {
    const where = `${kind}('${path}'): ${name}`;
    if (schema === undefined) continue;
    if (!isSchema(schema)) throw new TypeError(`${where} must be a schema, such as z.object({ … })`);
    if (kind === 'websocket' || (kind === 'background' && name === 'output'))
      throw new TypeError(
        `${where}: only ${name === 'input' ? 'a handler and a background function have an input' : 'a handler has an answer'} to check`,
      );
  }
  return input === undefined && output === undefined ? undefined : { input, output };
}

/** Replaces a route's function until it is given. */
export function missing(path: string): () => never {
  return () => {
    throw new Error(`the route ${path} was declared without a function`);
  };
}

/**
 * A route that the app, or the server itself, has already.
 * @example
 * const isTaken = (error: unknown) => error instanceof RouteAlreadyInUseException;
 */
export class RouteAlreadyInUseException extends Error {
  override readonly name = 'RouteAlreadyInUseException';

  constructor(path: string, why = '') {
    super(`Route already in use: ${path}${why}`);
  }
}

/**
 * A route that is not text.
 * @example
 * const isMistake = (error: unknown) => error instanceof InvalidEndpointTypeException;
 */
export class InvalidEndpointTypeException extends Error {
  override readonly name = 'InvalidEndpointTypeException';

  constructor() {
    super("Invalid endpoint type. Must be 'handler' or 'background'"); // the text of Potassium
  }
}
