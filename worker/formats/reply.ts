/**
 * An answer with its own status and headers, as an adapter or a dialect's format describes it; `running-call.ts` sends it.
 * Formats that write their own body around it ask for its value, or for the text of its error.
 */
import { badOutput, ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import { isUtf8 } from 'node:buffer';
import { mediaType } from '../../protocol/text/headers.js';

export type AnyIterator = Iterator<unknown> | AsyncIterator<unknown>;

export type ReplyBody =
  /** Encoded by its type and the client's Accept header, which also gives the content type; the head does not count. */
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'json'; readonly value: unknown }
  /** Encoded by `formats/mms.ts`; the content type of the encoding is used if the head has none. */
  | { readonly kind: 'result'; readonly value: unknown }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'stream';
      readonly iterator: AnyIterator;
      /** True if the first item determines the content type, not the head. */
      readonly typeFromItem?: boolean;
      /** True if the client's Accept header determines the encoding and the head. */
      readonly byAccept?: boolean;
    };

/** The head of a value that the app returned. */
export const PLAIN_HEAD: ReplyHead = { status: 200, contentType: '', headers: '', phrase: '' };

export class Reply {
  constructor(
    readonly head: ReplyHead,
    readonly body: ReplyBody,
  ) {}
}

/**
 * Maximum length of the headers: far more than any client reads (curl 300 KiB, Node 16 KiB), far less than a frame head
 * holds.
 */
const MAX_HEADER_CHARS = 64 * 1024;

/**
 * Returns headers in the form of `protocol/text/headers.ts`, unchanged.
 * @throws SERVE_OUTPUT_INVALID if they and the content type are too long
 */
export function checkedHeaders(headers: string, contentType: string): string {
  const chars = headers.length + contentType.length;
  if (chars <= MAX_HEADER_CHARS) return headers;
  throw badOutput(`The model's response headers are ${chars} characters; ${MAX_HEADER_CHARS} are allowed.`);
}

/** Empty for a stream. */
export function errorText({ head, body }: Reply): string {
  if (body.kind === 'stream') return '';
  if (body.kind !== 'bytes') return textOf(body.value);
  if (!isUtf8(body.bytes)) return 'The app refused this call.';
  const text = Buffer.from(body.bytes).toString();
  return mediaType(head.contentType) === 'application/json' ? textOf(parsed(text)) : text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns the message of an error as most apps write one, else all of it. */
function textOf(value: unknown): string {
  const { error = value } = (value ?? {}) as { readonly error?: unknown };
  const { message = error } = (error ?? {}) as { readonly message?: unknown };
  return typeof message === 'string' ? message : JSON.stringify(value) || '';
}

/** @throws SERVE_HTTP_ERROR with the status of an error that the app has answered itself */
export function assertNoError(answer: Reply): void {
  const { status } = answer.head;
  if (status < 400) return;
  throw new ServeError('SERVE_HTTP_ERROR', errorText(answer) || undefined, { status });
}

/** The value of a whole answer; a body of JSON or text is read, because the caller sees no content type. */
export function valueOf(body: Exclude<ReplyBody, { kind: 'stream' }>, contentType: string): unknown {
  if (body.kind !== 'bytes') return body.value;
  const type = mediaType(contentType);
  if (type === 'application/json') return JSON.parse(Buffer.from(body.bytes).toString()) as unknown;
  return type.startsWith('text/') ? Buffer.from(body.bytes).toString() : body.bytes;
}
