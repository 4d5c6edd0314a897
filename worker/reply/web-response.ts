/** Sends web-standard `Response` objects unchanged: status, headers, body. */
import { ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import { isPhrase } from '../../protocol/wire/fields.js';
import { checkedHeaders, type ReplyBody } from '../formats/reply.js';

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
    throw new ServeError('SERVE_OUTPUT_INVALID', 'The model returned Response.error(), which has no status.');
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
