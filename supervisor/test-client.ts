/** A server for one test: a real worker runs init, a free port of this machine, calls by path. */
import { ServeError } from '../protocol/errors.js';
import { serve, type ServeOptions } from './serve.js';

/** As `worker/api/potassium/starter.ts` declares them for authors. */
interface TestRequest {
  readonly json?: unknown;
  readonly data?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly contentType?: string;
}

interface TestResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Buffer;
  readonly text: string;
  readonly json: unknown;
}

interface TestClient {
  readonly url: string;
  post(path: string, request?: TestRequest): Promise<TestResponse>;
  get(path: string): Promise<TestResponse>;
  close(): Promise<void>;
}

/** Resolves once a worker is ready. @throws ServeError if none can start; then nothing is left running */
export async function startTestClient(options: ServeOptions): Promise<TestClient> {
  const server = await serve({ host: '127.0.0.1', port: 0, logLevel: 'warn', restartLimit: 0, ...options });
  try {
    await server.ready;
  } catch (error) {
    await server.close();
    const { message, detail } = error as ServeError;
    throw new Error(`The app cannot be tested: ${detail || message}`, { cause: error });
  }
  const send = async (path: string, init: RequestInit): Promise<TestResponse> => {
    const response = await fetch(new URL(path, server.url), { ...init, keepalive: false });
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
    url: server.url,
    post: (path, request = {}) => send(path, { method: 'POST', ...bodyOf(request) }),
    get: (path) => send(path, { headers: { Connection: 'close' } }),
    close: async () => {
      await server.close();
    },
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
    return null; // as its name says
  }
}
