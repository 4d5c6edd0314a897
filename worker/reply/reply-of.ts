/**
 * Describes any answer of an app as a `Reply`: a value, a stream, a web-standard `Response`, which is sent unchanged, or a
 * `Response` of ours, which an app of any kind may return or throw.
 */
import { PLAIN_HEAD, Reply, checkedHeaders, type ReplyBody } from '../formats/reply.js';
import { iteratorOf } from './stream.js';
import { badOutput } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import { isPhrase } from '../../protocol/wire/fields.js';
import { Blob } from 'node:buffer';
import { assertStatus } from '../api/http-error.js';
import {
  CONTENT_TYPE,
  JSON_TYPE,
  RESPONSE,
  type Response as OwnResponse,
} from '../api/potassium/response.js';

/** Nothing is encoded yet. Rejects with the error of an answer that cannot be sent. */
export async function replyOf(output: unknown): Promise<Reply> {
  if (output instanceof Reply) return output;
  if (isPotassiumResponse(output)) return replyOfResponse(output);
  if (isResponse(output)) return new Reply(responseHead(output), await responseBody(output));
  const iterator = iteratorOf(output);
  if (iterator === null) return new Reply(PLAIN_HEAD, { kind: 'value', value: output });
  return new Reply(PLAIN_HEAD, { kind: 'stream', iterator, byAccept: true });
}

/** Whether it is a Response, which answers a call also if it is thrown. */
export function isAnswer(thrown: unknown): boolean {
  return isResponse(thrown) || isPotassiumResponse(thrown);
}

/** Headers that are not sent with a message: those of the connection (RFC 9110 section 7.6.1), and the content type. */
export const HOP_HEADERS = new Set([
  'content-length',
  'content-type',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'trailer',
]);

/**
 * Recognises a Response by its tag, not with `instanceof`: naming the global class makes Node load its whole fetch, 45
 * ms on the first call, and a Response of another implementation is as good. Never throws, even for a hostile Proxy.
 */
export function isResponse(value: unknown): value is Response {
  try {
    return Object.prototype.toString.call(value) === '[object Response]';
  } catch {
    return false;
  }
}

/** @throws SERVE_OUTPUT_INVALID if no HTTP reply can carry it */
export function responseHead(response: Response): ReplyHead {
  if (response.status === 0) {
    throw badOutput('The model returned Response.error(), which has no status.');
  }
  const lines: string[] = [];
  // fetch() has decoded the body of the Response it returns, and left the header that names the encoding.
  const isFetched = response.type !== 'default';
  response.headers.forEach((value, name) => {
    if (HOP_HEADERS.has(name) || (isFetched && name === 'content-encoding')) return;
    lines.push(name, value);
  });
  const fallback = response.body === null ? '' : 'application/octet-stream';
  const contentType = response.headers.get('content-type') ?? fallback;
  return {
    status: response.status,
    contentType,
    headers: checkedHeaders(lines.join('\n'), contentType),
    phrase: phraseOf(response),
  };
}

/** Returns the reason phrase; another implementation's Response may have any text. */
function phraseOf({ statusText }: Response): string {
  return typeof statusText === 'string' && isPhrase(statusText) ? statusText : '';
}

/**
 * Returns the body, complete if all of it is available at once (`Response.json`, a string, bytes), otherwise as a
 * stream. A complete body gets Content-Length and Server-Timing, and fails as a whole.
 */
export async function responseBody(response: Response): Promise<ReplyBody> {
  if (response.body === null) return { kind: 'bytes', bytes: new Uint8Array(0) };
  const reader = response.body.getReader();
  const first = await reader.read();
  if (first.done) return { kind: 'bytes', bytes: new Uint8Array(0) };
  const second = reader.read();
  const soon = await Promise.race([second, nextTurn()]);
  // A stream of the app may contain text, which the streaming side encodes.
  const { value } = first as { value: unknown };
  if (soon?.done === true && value instanceof Uint8Array) return { kind: 'bytes', bytes: value };
  return { kind: 'stream', iterator: rest(first.value, second, reader) };
}

/** Not a generator: `return()` of one that never started would not cancel the reader. */
function rest(
  first: unknown,
  second: Promise<IteratorResult<unknown, unknown>>,
  reader: ReadableStreamDefaultReader<unknown>,
): AsyncIterator<unknown> {
  const ahead: (IteratorResult<unknown, unknown> | typeof second)[] = [{ done: false, value: first }, second];
  return {
    next: () => Promise.resolve(ahead.shift() ?? (reader.read() as typeof second)),
    return: async () => {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

function nextTurn(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(() => resolve(undefined)));
}

/** Never throws, even for a hostile Proxy. */
export function isPotassiumResponse(value: unknown): value is OwnResponse {
  try {
    return typeof value === 'object' && value !== null && RESPONSE in value;
  } catch {
    return false;
  }
}

/** @throws RangeError, TypeError or SERVE_OUTPUT_INVALID if it cannot be sent */
export function replyOfResponse(response: OwnResponse): Reply {
  const { status } = response;
  assertStatus(status);
  const body = bodyOf(response);
  const { contentType, headers } = headersOf(response);
  const type = contentType || (body.kind === 'json' ? JSON_TYPE : typeOf(response.body));
  return new Reply({ status, contentType: type, headers: checkedHeaders(headers, type), phrase: '' }, body);
}

/** Whether several calls can get it as their answer: it reports an error, and its body can be sent again. */
export function mayAnswerSeveral({ status, isJson, body }: OwnResponse): boolean {
  const isWhole = isJson || body === undefined || typeof body === 'string' || body instanceof Uint8Array;
  return status >= 400 && isWhole;
}

function bodyOf(response: OwnResponse): ReplyBody {
  if (response.isJson) return { kind: 'json', value: response.json };
  const { body } = response;
  if (body === undefined) return { kind: 'bytes', bytes: new Uint8Array(0) };
  if (typeof body === 'string') return { kind: 'bytes', bytes: Buffer.from(body) };
  if (body instanceof Uint8Array) return { kind: 'bytes', bytes: body };
  if (body instanceof ArrayBuffer) return { kind: 'bytes', bytes: new Uint8Array(body) };
  if (body instanceof Blob) return { kind: 'stream', iterator: body.stream()[Symbol.asyncIterator]() };
  const iterator = iteratorOf(body) ?? (body as Partial<Iterable<unknown>>)[Symbol.iterator]?.();
  if (iterator !== undefined) return { kind: 'stream', iterator };
  throw new TypeError('Potassium Response object body must be text, bytes, or an iterable of them');
}

const NO_HEADERS = { contentType: '', headers: '' };

function headersOf({ headers }: OwnResponse): { contentType: string; headers: string } {
  const names = Object.keys(headers);
  if (names.length === 0) return NO_HEADERS;
  let contentType = '';
  const lines: string[] = [];
  for (const name of names) {
    const value = headers[name];
    if (value === JSON_TYPE && name === CONTENT_TYPE) {
      contentType = value;
      continue;
    }
    for (const each of Array.isArray(value) ? (value as string[]) : [String(value)]) {
      assertOneLine(name, each);
      if (name.toLowerCase() === 'content-type') contentType = each;
      else lines.push(name, each);
    }
  }
  return { contentType, headers: lines.join('\n') };
}

/** Refuses line breaks, which would end the header and begin another one. @throws SERVE_OUTPUT_INVALID */
function assertOneLine(name: string, value: string): void {
  if (!/[\r\n]/.test(name) && !/[\r\n]/.test(value)) return;
  throw badOutput(
    `The model's response header ${JSON.stringify(name.slice(0, 100))} has a line break in it.`,
  );
}

function typeOf(body: OwnResponse['body']): string {
  if (body === undefined) return '';
  if (body instanceof Blob && body.type !== '') return body.type;
  return typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream';
}
