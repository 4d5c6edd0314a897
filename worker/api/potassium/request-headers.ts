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
