/** Turns a `Response` of ours, which an app of any kind may return or throw, into a reply. */
import { Blob } from 'node:buffer';
import { ServeError } from '../../protocol/errors.js';
import { assertStatus } from '../api/http-error.js';
import { CONTENT_TYPE, JSON_TYPE, RESPONSE, type Response } from '../api/potassium/response.js';
import { Reply, checkedHeaders, type ReplyBody } from '../formats/reply.js';
import { iteratorOf } from './stream.js';

/** Never throws, even for a hostile Proxy. */
export function isPotassiumResponse(value: unknown): value is Response {
  try {
    return typeof value === 'object' && value !== null && RESPONSE in value;
  } catch {
    return false;
  }
}

/** @throws RangeError, TypeError or SERVE_OUTPUT_INVALID if it cannot be sent */
export function replyOfResponse(response: Response): Reply {
  const { status } = response;
  assertStatus(status);
  const body = bodyOf(response);
  const { contentType, headers } = headersOf(response);
  const type = contentType || (body.kind === 'json' ? JSON_TYPE : typeOf(response.body));
  return new Reply({ status, contentType: type, headers: checkedHeaders(headers, type), phrase: '' }, body);
}

/** Whether several calls can get it as their answer: it reports an error, and its body can be sent again. */
export function mayAnswerSeveral({ status, isJson, body }: Response): boolean {
  const isWhole = isJson || body === undefined || typeof body === 'string' || body instanceof Uint8Array;
  return status >= 400 && isWhole;
}

function bodyOf(response: Response): ReplyBody {
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

function headersOf({ headers }: Response): { contentType: string; headers: string } {
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
  const shown = JSON.stringify(name.slice(0, 100));
  throw new ServeError(
    'SERVE_OUTPUT_INVALID',
    `The model's response header ${shown} has a line break in it.`,
  );
}

function typeOf(body: Response['body']): string {
  if (body === undefined) return '';
  if (body instanceof Blob && body.type !== '') return body.type;
  return typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream';
}
