/** Web-standard `Response` objects, honoured as the handler made them: status, headers, body. */
import { ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import { isPhrase } from '../../protocol/wire/phrase.js';
import { checkedHeaders } from './reply.js';

export type ResponseBody =
  | { readonly kind: 'whole'; readonly body: Uint8Array }
  | { readonly kind: 'stream'; readonly chunks: AsyncIterator<unknown> };

/** Headers that do not stand among those of a message: of the connection (RFC 9110 section 7.6.1), and the type. */
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
 * A Response is told by its tag, not with `instanceof`: naming the global class makes Node load its whole fetch, 45 ms on the
 * first call, and a Response of another implementation is as good. Never throws, whatever a Proxy does.
 */
export function isResponse(value: unknown): value is Response {
  try {
    return Object.prototype.toString.call(value) === '[object Response]';
  } catch {
    return false;
  }
}

/** @throws SERVE_OUTPUT_INVALID on what no HTTP reply can carry */
export function responseHead(response: Response): ReplyHead {
  if (response.status === 0) {
    throw new ServeError('SERVE_OUTPUT_INVALID', 'The model returned Response.error(), which has no status.');
  }
  const lines: string[] = [];
  // fetch() has decoded the body of a Response it returns, and left the header that says it is encoded.
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

/** Another implementation's Response may hold any text. */
function phraseOf({ statusText }: Response): string {
  return typeof statusText === 'string' && isPhrase(statusText) ? statusText : '';
}

/**
 * Returns the body, whole if it ends with what is there at once (`Response.json`, a string, bytes), else as a stream.
 * A whole body gets Content-Length and Server-Timing and fails as a whole.
 */
export async function responseBody(response: Response): Promise<ResponseBody> {
  if (response.body === null) return { kind: 'whole', body: new Uint8Array(0) };
  const reader = response.body.getReader();
  const first = await reader.read();
  if (first.done) return { kind: 'whole', body: new Uint8Array(0) };
  const second = reader.read();
  const soon = await Promise.race([second, nextTurn()]);
  // A stream of the app's own may hold text; the streaming side knows what to do with it.
  const { value } = first as { value: unknown };
  if (soon?.done === true && value instanceof Uint8Array) return { kind: 'whole', body: value };
  return { kind: 'stream', chunks: rest(first.value, second, reader) };
}

/** This is not a generator: `return()` of one that never started would not cancel the reader. */
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
