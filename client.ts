/**
 * `banana-serve/client`: a model of a server, called as a program calls its function of `supervise()`. It needs `fetch` and
 * nothing else, so it runs in browsers, too.
 */
import type { CallOptions, InputOf, OutputOf } from './protocol/app-types.js';
import type { ErrorCode, ServeError as ServerError } from './protocol/errors.js';

export type { CallOptions } from './protocol/app-types.js';

/**
 * Options of a client.
 * @example
 * const options: ClientOptions = { key: 'my key', retries: 5 };
 * const model = client('http://localhost:8000', options);
 */
export interface ClientOptions {
  /** An API key of the server. */
  readonly key?: string | undefined;
  /**
   * Most times that a call is sent again which the server refused before it began, after the time that the server asks for;
   * 2 by default.
   */
  readonly retries?: number | undefined;
}

/** Stands for a value that JSON cannot carry, so that its use does not compile. */
interface NotJson {
  readonly 'JSON has no such value': never;
}

/** A `DataView` has no elements. */
type TypedArray = ArrayBufferView & { readonly BYTES_PER_ELEMENT: number };

/* eslint-disable @typescript-eslint/no-explicit-any -- any such type is meant */
type NoData =
  | bigint
  | symbol
  | ((...args: any) => unknown)
  | ReadonlyMap<any, any>
  | ReadonlySet<any>
  | Error
  | Promise<any>;
/* eslint-enable @typescript-eslint/no-explicit-any */

/**
 * A value as JSON leaves it: a typed array is an array of numbers, a date is text.
 * @example
 * const found: Json<{ at: Date; vector: Float32Array }> = { at: '2026-01-01T00:00:00.000Z', vector: [0.5, 1] };
 */
export type Json<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null
    ? T
    : T extends void
      ? null
      : T extends TypedArray
        ? number[]
        : T extends NoData
          ? NotJson
          : T extends { toJSON(...args: never[]): infer Written }
            ? Json<Written>
            : T extends readonly unknown[]
              ? { [K in keyof T]: Json<T[K]> }
              : { [K in keyof T]: JsonField<T[K]> };

type JsonField<T> = T extends undefined ? undefined : Json<T>;

/** Bytes come as such, and a stream as an iterable; every other answer is JSON. */
type Answer<T> = unknown extends T
  ? T
  : T extends AsyncIterableIterator<infer Item>
    ? AsyncIterableIterator<Json<Item>>
    : T extends Uint8Array | ArrayBuffer
      ? Uint8Array
      : Json<T>;

type Input<App> =
  InputOf<App> extends [infer I]
    ? [input: I extends Uint8Array ? I : Json<I>]
    : [input?: JsonField<InputOf<App>[0]>];

/**
 * A route of an app: call it, or start a job of it.
 * @example
 * const train: ClientRoute = client('http://localhost:8000').route('/train');
 * const { id } = await train.job({ steps: 100 });
 */
export interface ClientRoute<In extends unknown[] = [input?: unknown], Out = unknown> {
  (...args: [...In, options?: CallOptions]): Promise<Out>;
  /** Starts a job, which runs whether its client stays or not (docs/jobs.md). It resolves once the server has stored it. */
  job(...args: [...In, options?: CallOptions]): Promise<ClientJob<Out>>;
}

/**
 * A model of a server as a function. Types follow from that of the app's module, as JSON leaves them.
 * @example
 * const embed: ModelClient = client('http://localhost:8000');
 * const answer = await embed({ text: 'hello' });
 */
export interface ModelClient<App = unknown> extends ClientRoute<Input<App>, Answer<OutputOf<App>>> {
  /** The function of another route of the app, such as those of a Potassium app. */
  route(path: string): ClientRoute;
}

/**
 * A job that a client has started.
 * @example
 * const job: ClientJob = await client('http://localhost:8000').job({ steps: 100 });
 * for await (const { fraction } of job.progress) console.log(fraction);
 * console.log(await job.result());
 */
export interface ClientJob<Out = unknown> {
  readonly id: string;
  /** Reports of the app, as they come, up to the end of the job. */
  readonly progress: AsyncIterable<{ readonly fraction: number; readonly text: string }>;
  /** The job's answer once it has ended; rejects with its error. */
  result(options?: CallOptions): Promise<Out>;
}

type ErrorFacts = {
  readonly [K in 'issues' | 'begun' | 'retryAfterMs' | 'status' | 'cause']?: ServerError[K] | undefined;
};

/**
 * An error of a call, told apart by `code` (docs/errors.md).
 * @example
 * const model = client('http://localhost:8000');
 * const answer = await model('hello').catch((error: ServeError) => (error.begun ? null : model('hello')));
 */
export class ServeError extends Error implements ErrorFacts {
  override readonly name = 'ServeError';
  declare readonly code: ErrorCode;
  /** The wrong values of an input that does not fit its schema. */
  declare readonly issues: ServerError['issues'];
  /** Whether the app may have begun to run the call; true if nobody knows. */
  declare readonly begun: boolean;
  /** Time after which it may be worth to try again; undefined if nobody knows. */
  declare readonly retryAfterMs: number | undefined;
  /** Status of the answer, of the code `SERVE_HTTP_ERROR`: the app chose it, or a proxy; else 0. */
  declare readonly status: number;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    const { issues = [], begun = true, retryAfterMs, status = 0 } = facts;
    Object.assign(this, { code, issues, begun, retryAfterMs, status });
  }
}

/** An answer of the server, and the error of what fails while its body is read. */
interface Reply {
  readonly response: Response;
  readonly fail: (cause: unknown) => never;
}

interface Sent extends Pick<RequestInit, 'method' | 'body'> {
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Returns the model of a server as a function, as `supervise()` does: a program changes one line between them. `App` is the type
 * of the app's module. `url` is the server's, or `http://host/models/<name>` of one of several models. Errors are `ServeError`s.
 * @example
 * import { client } from 'banana-serve/client';
 * const embed = client('http://localhost:8000', { key: 'my key' });
 * const vector = await embed({ text: 'hello' }, { timeoutMs: 5000 });
 */
export function client<App = unknown>(
  url: string | URL,
  { key, retries = 2 }: ClientOptions = {},
): ModelClient<App> {
  const base = String(url).replace(/\/+$/, '');
  const jobs = `${base.replace(/\/models\/[^/]+$/, '')}/_k/jobs/`;
  const send = (to: string, { headers, ...init }: Sent, options?: CallOptions): Promise<Reply> => {
    const all = { ...(key !== undefined && { Authorization: `Bearer ${key}` }), ...headers };
    return sendUntilTaken(to, { ...init, headers: all }, options, retries);
  };
  const route = (path: string): ClientRoute => {
    const post = (input: unknown, options?: CallOptions, more?: Sent['headers']): Promise<Reply> => {
      const isBytes = input instanceof Uint8Array;
      const type = isBytes ? 'application/octet-stream' : 'application/json';
      const headers = { 'Content-Type': type, Accept: 'application/json, application/x-ndjson', ...more };
      const body = isBytes ? (input as Uint8Array<ArrayBuffer>) : (JSON.stringify(input) ?? null);
      return send(base + path.replace(/^\/?/, '/'), { method: 'POST', headers, body }, options);
    };
    return Object.assign(
      async (input: unknown, options?: CallOptions) => readAnswer(await post(input, options)),
      {
        job: async (input: unknown, options?: CallOptions) => {
          const wishes = {
            Prefer: 'respond-async',
            [ONCE]: crypto.getRandomValues(new Uint32Array(4)).join('-'),
          };
          const { response } = await post(input, options, wishes);
          return jobOf(response.headers.get(JOB_ID) ?? '', jobs, send);
        },
      },
    );
  };
  return Object.assign(route('/'), { route }) as unknown as ModelClient<App>;
}

/** The server keeps a job of one key once: it may be sent again even if nobody knows whether it was stored. */
const ONCE = 'Idempotency-Key';

/** The code of an answer that is not the server's own: the app's, or a proxy's. */
const HTTP_ERROR: ErrorCode = 'SERVE_HTTP_ERROR';

/** A result that has it is that of a job which has not ended: ask again. An app may answer 202, too. */
const JOB_ID = 'X-Banana-Job-Id';

function jobOf(
  id: string,
  jobs: string,
  send: (to: string, sent: Sent, options?: CallOptions) => Promise<Reply>,
): ClientJob {
  async function* reports(): AsyncGenerator<{ fraction: number; text: string }> {
    let last = '';
    const events = await readAnswer(await send(jobs + id, { headers: { Accept: 'text/event-stream' } }));
    for await (const { progress } of events as AsyncIterable<{
      progress: { fraction: number; text: string } | null;
    }>) {
      if (progress !== null && last !== (last = JSON.stringify(progress))) yield progress;
    }
  }
  return {
    id,
    progress: { [Symbol.asyncIterator]: reports },
    async result(options) {
      return readAnswer(await send(`${jobs}${id}/result?wait=50s`, {}, options));
    },
  };
}

/** No server takes a longer limit: such a call has none. */
const LONGEST_MS = 86_400_000;

/**
 * Sends a request, and sends it again while the server refuses it before it begins and says when to come again. Resolves with an
 * answer that is no error.
 */
async function sendUntilTaken(
  to: string,
  { headers = {}, ...init }: Sent,
  { signal: given, timeoutMs = Infinity }: CallOptions = {},
  retries: number,
): Promise<Reply> {
  const untilMs = Date.now() + timeoutMs;
  const limit =
    timeoutMs <= 0
      ? AbortSignal.abort()
      : timeoutMs <= LONGEST_MS
        ? AbortSignal.timeout(Math.ceil(timeoutMs)) // takes no parts of a ms
        : undefined;
  const signal = limit && given ? AbortSignal.any([limit, given]) : (limit ?? given);
  const fail = (cause: unknown, begun = true): never => {
    const [code, message, why = cause] =
      given?.aborted === true
        ? (['SERVE_CANCELLED', 'The caller has given the call up.', given.reason as unknown] as const)
        : limit?.aborted === true
          ? (['SERVE_DEADLINE', 'The time of the call is over.'] as const)
          : (['SERVE_WORKER_LOST', 'The connection failed.'] as const);
    throw new ServeError(code, message, { begun, cause: why });
  };
  for (let left = retries; ; left -= 1) {
    if (signal?.aborted === true) fail(signal.reason, false);
    const time = limit && {
      'X-Request-Timeout-Seconds': `${Math.max(1, untilMs - Date.now()) / 1000}`,
    };
    const response = await fetch(to, {
      ...init,
      headers: { ...headers, ...time },
      signal: signal ?? null,
      redirect: 'manual', // fetch would make a GET of the call
    }).catch((cause: unknown) => fail(cause, !isRefused(cause)));
    const reply = { response, fail };
    if (!response.ok) {
      const error = await readError(reply);
      const { begun, retryAfterMs = Infinity } = error;
      const mayRepeat = !begun || ONCE in headers;
      if (!mayRepeat || left <= 0 || Date.now() + retryAfterMs >= untilMs) throw error;
      await pause(retryAfterMs, signal);
    } else if (init.method !== undefined || !response.headers.has(JOB_ID)) return reply;
    else left = retries + 1;
  }
}

/** Whether nobody listens at the address; only Node tells that. */
function isRefused(thrown: unknown): boolean {
  return (thrown as { cause?: { code?: unknown } }).cause?.code === 'ECONNREFUSED';
}

/** Ends early if the signal is aborted. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}

/** Reads the error in an answer. */
async function readError({ response, fail }: Reply): Promise<ServeError> {
  const { status, headers } = response;
  const text = await response.text().catch(fail);
  const afterMs = Number(headers.get('Retry-After-Ms') ?? 1000 * Number(headers.get('Retry-After') ?? NaN));
  return errorIn(headers.get('Location') ?? text, status, afterMs >= 0 ? afterMs : undefined);
}

/**
 * The error of the server in this text; else, as an app and a proxy may answer anything, an error with the text as its cause, or
 * the address of a redirect.
 */
function errorIn(text: string, status: number, retryAfterMs?: number): ServeError {
  const { error } = Object(valueOf(text)) as { error?: unknown };
  const { code, message, issues, begun } = Object(error) as Partial<ServerError>;
  if (code === undefined || message === undefined)
    return new ServeError(HTTP_ERROR, `The answer has the status ${status}.`, {
      status,
      retryAfterMs,
      cause: text,
    });
  return new ServeError(code, message, {
    issues,
    begun,
    retryAfterMs,
    status: code === HTTP_ERROR ? status : 0,
  });
}

/** The JSON value of a text, or the text itself. @throws ServeError of this status, if there is one, in its place */
function valueOf(text: string, status?: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (status === undefined) return text;
    throw errorIn(text, status);
  }
}

async function readAnswer(reply: Reply): Promise<unknown> {
  const { response, fail } = reply;
  const readText = (): Promise<string> => response.text().catch(fail);
  const type = response.headers.get('Content-Type') ?? '';
  if (/ndjson/.test(type)) return itemsOf(reply, /\n/, (line) => [valueOf(line, response.status)]);
  if (/event-stream/.test(type)) return itemsOf(reply, /\r?\n\r?\n/, readEvent);
  if (/json/.test(type)) return valueOf(await readText(), response.status);
  if (/^text\//.test(type)) return readText();
  return new Uint8Array(await response.arrayBuffer().catch(fail));
}

/** The items of a stream, as they come. `read`: the items in a part, of which the separator ends each. */
function itemsOf(
  { response, fail }: Reply,
  separator: RegExp,
  read: (part: string) => unknown[],
): AsyncGenerator<unknown> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const cancel = (): Promise<void> => reader.cancel().catch(() => {}); // it has failed, which its reader has got
  async function* items(): AsyncGenerator<unknown> {
    const decoder = new TextDecoder();
    let rest = '';
    try {
      for (;;) {
        const { done, value } = await reader.read().catch(fail);
        const text = decoder.decode(value, { stream: !done });
        rest += text;
        if (!done && !text.includes('\n')) continue; // so that a long item is not searched at each of its parts
        const parts = rest.split(separator);
        rest = done ? '' : (parts.pop() as string);
        for (const part of parts) if (part !== '') yield* read(part);
        if (done) return;
      }
    } finally {
      await cancel(); // after an item that is an error, or none
    }
  }
  const stream = items();
  const leave = stream.return.bind(stream);
  // A generator that was not begun would not run its `finally`, and one that waits would run it late.
  stream.return = async (value) => {
    await cancel();
    return leave(value);
  };
  return stream;
}

/** Reads a server-sent event: its data as JSON, else as text. @throws ServeError if it is an error */
function readEvent(event: string): unknown[] {
  const fieldsOf = (name: string): string[] =>
    event
      .split(/\r?\n/)
      .flatMap((line) => (line.startsWith(name) ? [line.slice(name.length).replace(/^ /, '')] : []));
  const data = fieldsOf('data:');
  if (fieldsOf('event:')[0] === 'error') throw errorIn(data.join('\n'), 0);
  return data.length === 0 ? [] : [valueOf(data.join('\n'))];
}
