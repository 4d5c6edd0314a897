/** What an app defines: its routes and functions, with the types of both. `potassium.ts` collects it. */
import type { RouteInput, RouteKind } from '../../../protocol/wire/messages.js';
import { parseWebhookUrl } from '../../../protocol/webhooks.js';
import { inputWishes, type InputWishes } from '../input-wishes.js';
import type { InitContext } from '../types.js';
import type { Request, WebSocketRequest } from './request.js';
import type { Response } from './response.js';

/** Where the adapter finds an app's definition. A registered symbol: the app may hold another instance of this module. */
export const DEFINITION = Symbol.for('banana-serve.potassium.definition');

/* eslint-disable @typescript-eslint/no-explicit-any -- authors declare what their routes take and give */

/** Answers a call. `context`: what `init` returned, the same object for all calls of one worker. */
export type Handler<Context, Json = any, Output = any> = (
  context: Context,
  request: Request<Json>,
) => Response<NoInfer<Output>> | Promise<Response<NoInfer<Output>>>;

/** One call's part of what a batch handler returns. An Error fails that call alone. */
export type BatchEntry<Output = any> = Response<Output> | Error | Promise<Response<Output> | Error>;

/** Answers calls that came together: one entry for each request, in their order. */
export type BatchHandler<Context, Json = any, Output = any> = (
  context: Context,
  requests: readonly Request<Json>[],
) => readonly BatchEntry<NoInfer<Output>>[] | Promise<readonly BatchEntry<NoInfer<Output>>[]>;

/** Runs after its caller was told that the call is taken; what it returns is kept for `GET /_k/jobs/:id`. */
export type Background<Context, Json = any> = (context: Context, request: Request<Json>) => unknown;

/** Talks with one client, and has the worker to itself until it returns, which closes the connection. */
export type WebSocketHandler<Context> = (context: Context, request: WebSocketRequest) => unknown;

/** A handler of Potassium up to 0.0.4: JSON in, JSON out. */
export type LegacyHandler<Context, Json = any> = (cache: Context, jsonIn: Json) => unknown;

export interface RouteOptions {
  /** Takes any body by its content type (bytes, MessagePack, multipart) and not JSON alone. */
  readonly raw?: boolean;
  /** Takes all that `raw` does, and a form (`application/x-www-form-urlencoded`) as an object of fields; a repeated field is an array. */
  readonly forms?: boolean;
  /** Takes all that `raw` does, and `text/plain` or other text as a string. */
  readonly text?: boolean;
}

/** The route's function takes requests together, as many as `--batch-size` allows. */
export interface BatchRouteOptions extends RouteOptions {
  readonly batch: true;
}

export interface BackgroundOptions extends RouteOptions {
  /** The URL to which the result is posted. */
  readonly resultWebhook?: string;
}

export interface Endpoint {
  readonly kind: RouteKind;
  readonly input: RouteInput;
  readonly wishes: InputWishes;
  readonly legacy: boolean;
  /** `run` takes an array of requests, and returns one of entries. */
  readonly batch: boolean;
  readonly webhook: string | null;
  readonly run: (context: any, request: any) => unknown;
}

/** The routes and functions that an app has defined so far. */
export interface Definition {
  readonly name: string;
  readonly endpoints: Map<string, Endpoint>;
  init: ((workerNum: number, ctx: InitContext) => unknown) | null;
  context: object;
  /** `setCache` was called: `init` need not return anything. */
  hasContext: boolean;
  resultWebhook: string | null;
}

/** Options of any kind of route, as they were given. */
export type GivenOptions = BackgroundOptions & { readonly batch?: boolean };

/** @throws TypeError if an option is not what it must be */
export function endpointOf(
  kind: RouteKind,
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
  const webhook = options.resultWebhook === undefined ? null : checkedUrl(options.resultWebhook);
  return { kind, input, wishes, legacy: false, batch, webhook, run };
}

/** Stands in for a route's function until it is given. */
export function missing(path: string): () => never {
  return () => {
    throw new Error(`the route ${path} was declared and given no function`);
  };
}

/** @throws TypeError if a webhook cannot be posted there */
export function checkedUrl(url: unknown): string {
  return parseWebhookUrl(url).href;
}
