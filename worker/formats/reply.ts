/** An answer with its own status and headers, as an adapter or a dialect's format describes it; `running-call.ts` sends it. */
import { ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';

export type ReplyBody =
  /** Encoded by its type and the client's Accept header, which also gives the content type; the head does not count. */
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'json'; readonly value: unknown }
  /** Encoded by `formats/mms.ts`; the content type of the encoding is used if the head has none. */
  | { readonly kind: 'result'; readonly value: unknown }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'stream';
      readonly iterator: Iterator<unknown> | AsyncIterator<unknown>;
      /** True if the first chunk determines the content type, not the head. */
      readonly typeFromChunk?: boolean;
      /** True if the client's Accept header determines the encoding and the head. */
      readonly byAccept?: boolean;
    };

/** The head of a value that the app returned. */
export const PLAIN_HEAD: ReplyHead = { status: 200, contentType: '', headers: '', phrase: '' };

export class Reply {
  readonly head: ReplyHead;
  readonly body: ReplyBody;

  constructor(head: ReplyHead, body: ReplyBody) {
    this.head = head;
    this.body = body;
  }
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
  const message = `The model's response headers are ${chars} characters; ${MAX_HEADER_CHARS} are allowed.`;
  throw new ServeError('SERVE_OUTPUT_INVALID', message);
}
