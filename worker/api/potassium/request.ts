/** The request that a Potassium handler gets. */
import type { CallInfo, AppLog, AppMetrics, CallParams, JobInfo, WebSocketConnection } from '../types.js';

/**
 * The request of one call.
 * @example
 * app.handler('/', (_context, request: Request<{ prompt: string }>) => {
 *   const language = request.headers.get('accept-language', 'en');
 *   return new Response({ json: { language, prompt: request.json.prompt } });
 * });
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the author declares what the route takes
export class Request<Json = any> {
  /** The parsed body: JSON, or by its content type on a raw route. */
  readonly json: Json;
  readonly #ctx: CallInfo;
  #headers: RequestHeaders | undefined;

  constructor(json: Json, ctx: CallInfo) {
    this.json = json;
    this.#ctx = ctx;
  }

  /** The value of `X-Request-Id` or `X-Banana-Request-Id`; created by the server if neither was sent. */
  get id(): string {
    return this.#ctx.requestId;
  }

  get headers(): RequestHeaders {
    return (this.#headers ??= new RequestHeaders(this.#ctx.headers));
  }

  /** The raw bytes of the body; the handler owns them. */
  get body(): Uint8Array {
    return this.#ctx.body;
  }

  get query(): URLSearchParams {
    return this.#ctx.query;
  }

  /** The `parameters` of a request of KServe's protocols or of Vertex AI; empty for any other request. */
  get params(): CallParams {
    return this.#ctx.params;
  }

  /** Aborts when no client waits for the answer any more; see `InferenceContext.signal`. */
  get signal(): AbortSignal {
    return this.#ctx.signal;
  }

  /** The job that this call is an attempt at; null if its client waits. */
  get job(): JobInfo | null {
    return this.#ctx.job;
  }

  /** Reports how far the job is; see `InferenceContext.progress`. */
  progress(fraction: number, text?: string): void {
    this.#ctx.progress(fraction, text);
  }

  get log(): AppLog {
    return this.#ctx.log;
  }

  get metrics(): AppMetrics {
    return this.#ctx.metrics;
  }
}

/**
 * The argument of a WebSocket route's function: the handshake, and the connection.
 * @example
 * app.websocket('/chat', async (_context, request: WebSocketRequest) => {
 *   await request.ws.send(`hello ${request.query.get('name')}`);
 * });
 */
export class WebSocketRequest extends Request<null> {
  readonly ws: WebSocketConnection;

  constructor(ws: WebSocketConnection, ctx: CallInfo) {
    super(null, ctx);
    this.ws = ws;
  }
}

/**
 * Request headers: names match in any case, with `-` or `_`.
 * @example
 * const tokenOf = (headers: RequestHeaders) => headers.require('Authorization').slice(7);
 */
export class RequestHeaders implements Iterable<[string, string]> {
  readonly #headers: Readonly<Record<string, string>>;

  /** `headers` have names in lower case; repeated headers are joined. */
  constructor(headers: Readonly<Record<string, string>>) {
    this.#headers = headers;
  }

  /** Returns the value, or `fallback` if the header was not sent. @throws TypeError if `name` is not a string */
  get(name: string): string | undefined;
  get<Fallback>(name: string, fallback: Fallback): string | Fallback;
  get(name: string, fallback?: unknown): unknown {
    return this.#find(name) ?? fallback;
  }

  /** Returns the value. @throws Error if the header was not sent */
  require(name: string): string {
    const value = this.#find(name);
    if (value !== undefined) return value;
    throw new Error(`The request has no header ${name}`);
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  [Symbol.iterator](): Iterator<[string, string]> {
    return Object.entries(this.#headers)[Symbol.iterator]();
  }

  #find(name: string): string | undefined {
    if (typeof name !== 'string') throw new TypeError(`a header's name must be text, not ${typeof name}`);
    const wanted = canonical(name);
    if (Object.hasOwn(this.#headers, wanted)) return this.#headers[wanted];
    return Object.entries(this.#headers).find(([key]) => canonical(key) === wanted)?.[1];
  }
}

function canonical(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
