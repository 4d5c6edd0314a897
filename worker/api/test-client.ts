/** A client for tests of an app: calls by path, answers as a whole. */
import { ServeError } from '../../protocol/errors.js';

/**
 * A request of a test.
 * @example
 * const request: TestRequest = { json: { prompt: 'hello' }, headers: { 'X-Request-Id': '1' } };
 */
export interface TestRequest {
  readonly json?: unknown;
  readonly data?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly contentType?: string;
}

/**
 * The answer to a test, as a whole.
 * @example
 * const wordOf = ({ statusCode, json }: TestResponse) => (statusCode === 200 ? json : null);
 */
export interface TestResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Buffer;
  readonly text: string;
  /** The body parsed as JSON; null if it is not JSON. */
  readonly json: unknown;
}

/**
 * A server of the app for a test.
 * @example
 * const client: TestClient = await app.testClient();
 * const { json } = await client.post('/', { json: { prompt: 'hello' } });
 * await client.close();
 */
export interface TestClient {
  readonly url: string;
  post(path: string, request?: TestRequest): Promise<TestResponse>;
  get(path: string): Promise<TestResponse>;
  /** Stops the server and its workers; afterwards they do not keep the process alive. */
  close(): Promise<void>;
}

/** The part of a test client that the server provides. */
export type TestServer = Pick<TestClient, 'url' | 'close'>;

export function testClientOf({ url, close }: TestServer): TestClient {
  const send = async (path: string, init: RequestInit): Promise<TestResponse> => {
    const response = await fetch(new URL(path, url), { ...init, keepalive: false });
    const data = Buffer.from(await response.arrayBuffer());
    const text = data.toString('utf8');
    return {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      data,
      text,
      json: jsonOrNull(text),
    };
  };
  return {
    url,
    post: (path, request = {}) => send(path, { method: 'POST', ...bodyOf(request) }),
    get: (path) => send(path, { headers: { Connection: 'close' } }),
    close,
  };
}

function bodyOf({ json, data, headers = {}, contentType }: TestRequest): RequestInit {
  if (json !== undefined && data !== undefined) {
    throw new ServeError('SERVE_CONFIG', 'A test request has json or data, not both.');
  }
  const type = contentType ?? (json === undefined ? undefined : 'application/json');
  const all = { ...headers, Connection: 'close', ...(type === undefined ? {} : { 'Content-Type': type }) };
  const body = json === undefined ? data : JSON.stringify(json);
  return { headers: all, ...(body === undefined ? {} : { body: body as string }) };
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a body that is not JSON reads as null
  }
}
