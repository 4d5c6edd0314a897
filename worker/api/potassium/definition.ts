/** The definition of an app: its routes and functions, with their types. `potassium.ts` collects it. */
import type { Route } from '../../../protocol/wire/messages.js';
import { parseWebhookUrl } from '../../../protocol/webhooks.js';
import { inputWishes, type InputWishes } from '../input-wishes.js';
import { repeatOptions, type RepeatOptions } from '../repeat-options.js';
import type { InitContext } from '../types.js';
import type { Request, WebSocketRequest } from './request.js';
import type { Response } from './response.js';

/**
 * The key of an app's definition, for the adapter. A registered symbol, because the app may have loaded another
 * instance of this module.
 */
export const DEFINITION = Symbol.for('banana-serve.potassium.definition');

/* eslint-disable @typescript-eslint/no-explicit-any -- authors declare what their routes take and give */

/** Answers a call. `context` is the result of `init`, the same object for all calls of one worker. */
export type Handler<Context, Json = any, Output = any> = (
  context: Context,
  request: Request<Json>,
) => Response<NoInfer<Output>> | Promise<Response<NoInfer<Output>>>;

/** The entry of one call in the result of a batch handler. An Error fails that call alone. */
export type BatchEntry<Output = any> = Response<Output> | Error | Promise<Response<Output> | Error>;

/** Answers the calls of a batch: returns one entry for each request, in their order. */
export type BatchHandler<Context, Json = any, Output = any> = (
  context: Context,
  requests: readonly Request<Json>[],
) => readonly BatchEntry<NoInfer<Output>>[] | Promise<readonly BatchEntry<NoInfer<Output>>[]>;

/** Runs after its caller got the acknowledgement; the result is stored for `GET /_k/jobs/:id`. */
export type Background<Context, Json = any> = (context: Context, request: Request<Json>) => unknown;

/** Serves one client and occupies the worker until it returns, which closes the connection. */
export type WebSocketHandler<Context> = (context: Context, request: WebSocketRequest) => unknown;

/** A handler of Potassium up to 0.0.4: JSON in, JSON out. */
export type LegacyHandler<Context, Json = any> = (cache: Context, jsonIn: Json) => unknown;

export interface RouteOptions extends RepeatOptions {
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

/** The route's function takes batches of requests, of at most `--batch-size`. */
export interface BatchRouteOptions extends RouteOptions {
  readonly batch: true;
}

export interface BackgroundOptions extends RouteOptions {
  /** The URL to which the result is posted. */
  readonly resultWebhook?: string;
}

export interface Endpoint {
  readonly kind: Route['kind'];
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
export type GivenOptions = BackgroundOptions & { readonly batch?: boolean };

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
  const wishes = inputWishes({ ...options }, `${kind}('${path}')`);
  const input = options.raw === true || wishes.forms || wishes.text ? 'any' : 'json';
  const repeat = repeatOptions({ ...options }, `${kind}('${path}')`);
  const webhook = options.resultWebhook === undefined ? null : parseWebhookUrl(options.resultWebhook).href;
  return { kind, input, wishes, legacy: false, batch, webhook, repeat, run };
}

/** Replaces a route's function until it is given. */
export function missing(path: string): () => never {
  return () => {
    throw new Error(`the route ${path} was declared without a function`);
  };
}

/** An error in an app's definition, with Potassium's name. */
export class RouteAlreadyInUseException extends Error {
  override readonly name = 'RouteAlreadyInUseException';

  constructor(path: string, why = '') {
    super(`Route already in use: ${path}${why}`);
  }
}

/** Another one, with the name and the text that Potassium has. */
export class InvalidEndpointTypeException extends Error {
  override readonly name = 'InvalidEndpointTypeException';

  constructor() {
    super("Invalid endpoint type. Must be 'handler' or 'background'"); // the text of Potassium
  }
}
