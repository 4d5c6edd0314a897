/**
 * Decodes compressed bodies: `Content-Encoding` (RFC 9110, section 8.4) and `Transfer-Encoding` (RFC 9112, section 7).
 *
 * They are decoded here, as they arrive, and not in the worker: so `--max-body`, the queue's bytes and whatever the
 * front reads of a body apply to its real size, and a worker in any language needs no decoder. zlib works in its own
 * threads. Decoding stops as soon as a body exceeds its limit, however much it would expand.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createGunzip, createInflate, type Gunzip, type Inflate } from 'node:zlib';
import { ServeError } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/text/sentences.js';

const DECODERS = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate } as const;

export type Coding = keyof typeof DECODERS;

/** The value of `Accept-Encoding`. */
export const SUPPORTED_CODINGS = 'gzip, deflate';

/** No client means to apply more codings than this to one body. */
const MAX_CODINGS = 3;

/**
 * A decoder takes one piece at a time: each write costs a trip to zlib's threads, however small it is. `JoinedRequest` joins the
 * pieces that arrive in the meantime. Chunks of 16 KiB, the default, would make four times as many trips.
 */
const OPTIONS = { writableHighWaterMark: 1, chunkSize: 64 * 1024 };

const NO_CODINGS: readonly Coding[] = [];

/**
 * Returns the codings of the body in the order in which they were applied; empty if there are none. @throws
 * SERVE_UNSUPPORTED_CODING
 */
export function codingsOf({ headers }: Pick<IncomingMessage, 'headers'>): readonly Coding[] {
  const content = headers['content-encoding'];
  const transfer = headers['transfer-encoding'];
  if (content === undefined && (transfer === undefined || transfer === 'chunked')) return NO_CODINGS;
  const names = [...namesIn(content), ...namesIn(transfer)].filter(
    (name) => name !== '' && name !== 'identity' && name !== 'chunked',
  );
  const unknown = names.find((name) => !Object.hasOwn(DECODERS, name));
  if (unknown === undefined && names.length <= MAX_CODINGS) return names as Coding[];
  const what =
    unknown === undefined
      ? `${names.length} codings, one over the other`
      : JSON.stringify(unknown.slice(0, 40));
  throw new ServeError(
    'SERVE_UNSUPPORTED_CODING',
    `The body is encoded with ${what}; this server accepts ${SUPPORTED_CODINGS} or an unencoded body.`,
  );
}

function namesIn(header = ''): string[] {
  return header.split(',').map((name) => name.trim().toLowerCase());
}

/**
 * Returns the decoded body. Pass its errors to `decodingFailed`. Destroying it ends the decoding; the rest of the
 * request then flows on and can be discarded.
 */
export function decodeBody(request: IncomingMessage, codings: readonly Coding[]): Readable {
  const decoders = codings.map((coding) => DECODERS[coding](OPTIONS)).reverse();
  const [first, last] = [decoders[0], decoders.at(-1)] as [Gunzip | Inflate, Gunzip | Inflate];
  decoders.forEach((decoder, i) => {
    const next = decoders[i + 1];
    if (next === undefined) return;
    decoder.on('error', (cause) => last.destroy(cause));
    decoder.pipe(next).on('close', () => decoder.destroy());
  });
  request.pipe(first);
  first.on('close', () => request.resume());
  return last;
}

/** The error for a body that could not be decoded. */
export function decodingFailed(codings: readonly Coding[], cause: Error): ServeError {
  return new ServeError(
    'SERVE_BAD_BODY',
    `The body is not valid ${codings.join(', ')}: ${asSentence(cause.message)}`,
    {
      cause,
    },
  );
}
