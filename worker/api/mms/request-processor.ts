/** One item's request and its response: `context.requestProcessor[idx]`. */
import { MAX_PHRASE_CHARS, isPhrase } from '../../../protocol/wire/fields.js';
import { assertStatus } from '../http-error.js';
import type { InferenceContext } from '../types.js';
import { addPythonNames } from './python-names.js';

/** A request as the worker has it. */
export type ItemRequest = Pick<InferenceContext, 'requestId' | 'headers' | 'signal' | 'job' | 'progress'>;

/**
 * A string for each header, and `{ 'content-type': … }` for each field of the item.
 * @example
 * const agentOf = (properties: RequestProperties) => String(properties['user-agent']);
 */
export type RequestProperties = Readonly<Record<string, string | { readonly 'content-type': string }>>;

/**
 * The request and the response of one item: `context.requestProcessor[idx]`.
 * @example
 * const refuse = (processor: RequestProcessor) => processor.reportStatus(404, 'Not here');
 */
export class RequestProcessor {
  readonly #request: ItemRequest;
  /** Returns the content types of the item's fields. */
  readonly #fieldTypes: () => Readonly<Record<string, string>>;
  readonly #responseHeaders = new Map<string, readonly [name: string, value: string]>();
  /** The same under the names of Python. */
  declare readonly get_request_property: RequestProcessor['getRequestProperty'];
  declare readonly get_request_properties: RequestProcessor['getRequestProperties'];
  declare readonly report_status: RequestProcessor['reportStatus'];
  declare readonly add_response_property: RequestProcessor['addResponseProperty'];
  declare readonly get_response_header: RequestProcessor['getResponseHeader'];
  declare readonly get_response_headers: RequestProcessor['getResponseHeaders'];
  declare readonly get_response_status_code: RequestProcessor['getResponseStatusCode'];
  declare readonly get_response_status_phrase: RequestProcessor['getResponseStatusPhrase'];
  #properties: RequestProperties | undefined;
  #status = 200;
  #phrase = '';

  static {
    addPythonNames(RequestProcessor.prototype);
  }

  constructor(request: ItemRequest, fieldTypes: () => Readonly<Record<string, string>>) {
    this.#request = request;
    this.#fieldTypes = fieldTypes;
  }

  /** A request header, looked up in any case; undefined if it was not sent. */
  getRequestProperty(key: string): string | undefined {
    const { headers } = this.#request;
    const name = String(key).toLowerCase();
    return Object.hasOwn(headers, name) ? headers[name] : undefined;
  }

  /**
   * All request headers, looked up in any case, and for each field of the item `{ 'content-type': … }`. A header takes
   * precedence over a field of the same name.
   */
  getRequestProperties(): RequestProperties {
    return (this.#properties ??= requestProperties(this.#request.headers, this.#fieldTypes()));
  }

  /**
   * Sets the status of the answer and its reason phrase, in which forbidden characters are replaced by `?`.
   * @throws RangeError unless `code` is an integer from 200 to 599
   */
  reportStatus(code: number, reasonPhrase: string | null = ''): void {
    const status = Number(code);
    assertStatus(status, code);
    this.#status = status;
    this.#phrase = asPhrase(String(reasonPhrase ?? ''));
  }

  /** Sets a header of the answer and replaces one of the same name. @throws TypeError if it contains a line break */
  addResponseProperty(key: string, value: unknown): void {
    const [name, text] = [String(key), String(value)];
    if (/[\r\n]/.test(name) || /[\r\n]/.test(text))
      throw new TypeError(`response header ${JSON.stringify(name.slice(0, 100))} has a line break in it`);
    this.#responseHeaders.set(name.toLowerCase(), [name, text]);
  }

  /** Returns a header that was set for the answer, looked up in any case. */
  getResponseHeader(key: string): string | undefined {
    return this.#responseHeaders.get(String(key).toLowerCase())?.[1];
  }

  /** Returns the headers that were set for the answer. */
  getResponseHeaders(): Record<string, string> {
    return Object.fromEntries(this.#responseHeaders.values());
  }

  getResponseStatusCode(): number {
    return this.#status;
  }

  /** Returns the reason phrase; empty for the standard one. */
  getResponseStatusPhrase(): string {
    return this.#phrase;
  }
}

/** Replaces forbidden characters, so that a phrase never fails the item that it explains. */
function asPhrase(text: string): string {
  const short = text.slice(0, MAX_PHRASE_CHARS);
  if (isPhrase(short)) return short;
  return [...short].map((char) => (isPhrase(char) ? char : '?')).join('');
}

/** Looks a name up unchanged, then in lower case, which is the case of headers. */
const ANY_CASE: ProxyHandler<Record<string, unknown>> = {
  get: (target, key): unknown =>
    typeof key === 'string' ? target[nameIn(target, key)] : Reflect.get(target, key),
  has: (target, key) => (typeof key === 'string' ? nameIn(target, key) in target : Reflect.has(target, key)),
};

function nameIn(target: object, key: string): string {
  return key in target ? key : key.toLowerCase();
}

/** `headers` have names in lower case; `fieldTypes` are content types by the name of the field. */
function requestProperties(
  headers: Readonly<Record<string, string>>,
  fieldTypes: Readonly<Record<string, string>>,
): RequestProperties {
  const map = Object.create(null) as Record<string, string | { 'content-type': string }>;
  for (const [name, type] of Object.entries(fieldTypes)) {
    if (!Object.hasOwn(headers, name.toLowerCase())) map[name] = { 'content-type': type };
  }
  Object.assign(map, headers);
  return new Proxy(map, ANY_CASE) as RequestProperties;
}
