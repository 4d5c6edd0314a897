import { assertStatus } from '../http-error.js';

/**
 * The answer of a Potassium handler. The adapter recognises it by a symbol, not by its class, because a TypeScript app
 * may have loaded another instance of this module.
 */
export const RESPONSE = Symbol.for('banana-serve.potassium.response');

export const CONTENT_TYPE = 'Content-Type';
export const JSON_TYPE = 'application/json';

export type ResponseBody =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream
  | Iterable<string | Uint8Array>
  | AsyncIterable<string | Uint8Array>;

interface AnyResponse {
  /** An integer from 200 to 599; 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

interface JsonResponse<Json> extends AnyResponse {
  /** Any JSON value; its content type is always `application/json`, also if `headers` contain another. */
  readonly json?: Json;
  readonly body?: undefined;
}

interface BodyResponse extends AnyResponse {
  readonly json?: undefined;
  /** Text, bytes, or an iterable or stream of them, which is streamed to the client. */
  readonly body: ResponseBody;
}

/** JSON or a body, not both. */
export type ResponseInit<Json = unknown> = JsonResponse<Json> | BodyResponse;

const ONE_OBJECT =
  "the Response of banana-serve/potassium takes one object: new Response({ status: 201, json: { … } }); the web's is globalThis.Response";

/**
 * The answer of a handler.
 * @example
 * app.handler('/made', () => new Response({ status: 201, json: { id: 5 }, headers: { 'X-One': '1' } }));
 */
export class Response<Json = unknown> {
  readonly [RESPONSE] = true;
  status: number;
  /** If `json` is set, `Content-Type` is `application/json`; a header set here afterwards wins. */
  headers: Record<string, string | readonly string[]>;
  body: ResponseBody | undefined;
  #json: Json | undefined;

  /**
   * @throws Error if both json and body are given, RangeError if the status is not allowed, TypeError for anything but
   * one object: Python's order, and that of the web's Response, would give an empty answer
   */
  constructor(init: ResponseInit<Json> = {}, ...others: readonly never[]) {
    const isObject = typeof init === 'object' && init !== null && !Array.isArray(init);
    if (!isObject || others.length > 0) throw new TypeError(ONE_OBJECT);
    const { status = 200, json, headers = {}, body } = init;
    if (json !== undefined && body !== undefined) {
      throw new Error('Potassium Response object cannot have both json and body set');
    }
    assertStatus(status);
    this.status = status;
    this.headers = { ...headers };
    this.body = body;
    if (json !== undefined) this.json = json;
  }

  /** The given value, or the body parsed as JSON; null if there is neither. */
  get json(): Json | null {
    if (this.#json !== undefined) return this.#json;
    if (typeof this.body !== 'string' && !(this.body instanceof Uint8Array)) return null;
    try {
      return JSON.parse(Buffer.from(this.body as Uint8Array).toString('utf8')) as Json;
    } catch {
      return null; // as documented: null for a body that is not JSON
    }
  }

  /** Sets the JSON value, which replaces the body. */
  set json(value: Json) {
    this.#json = value;
    this.body = undefined;
    for (const name of Object.keys(this.headers)) {
      if (name.toLowerCase() === 'content-type') delete this.headers[name];
    }
    if (value !== undefined) this.headers[CONTENT_TYPE] = JSON_TYPE;
  }

  /** Whether the answer is `json`, and not `body`. */
  get isJson(): boolean {
    return this.#json !== undefined;
  }
}
