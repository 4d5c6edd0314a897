/**
 * Receives a request's body within its limits: on size, on pauses, on the average rate.
 *
 * Compressed bodies, by `Content-Encoding` (RFC 9110, section 8.4) or `Transfer-Encoding` (RFC 9112, section 7), are decoded
 * here, as they arrive, and not in the worker: so `--max-body`, the queue's bytes and whatever the front reads of a body apply
 * to its real size, and a worker in any language needs no decoder. zlib works in its own threads. Decoding stops as soon as a
 * body exceeds its limit, however much it would expand.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { createGunzip, createInflate, type Gunzip } from 'node:zlib';
import { ServeError } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { formatBytes } from '../../options/units.js';
import { Body } from './body-memory.js';

export interface BodyLimits {
  /** The announced Content-Length; 0 if the size is not known (chunked, compressed). */
  readonly announcedBytes: number;
  readonly maxBodyBytes: number;
  /** The longest pause that the client may make. */
  readonly bodyTimeoutMs: number;
}

/** @throws SERVE_BODY_TOO_LARGE, SERVE_UNSUPPORTED_CODING before a byte is read */
export function bodyLimits(
  request: IncomingMessage,
  maxBodyBytes: number,
  bodyTimeoutMs: number,
): BodyLimits {
  const bytes = Number(request.headers['content-length'] ?? 0);
  if (bytes > maxBodyBytes) throw tooLarge(maxBodyBytes);
  const announcedBytes = codingsOf(request).length === 0 ? bytes : 0;
  return { announcedBytes, maxBodyBytes, bodyTimeoutMs };
}

/** Responses to requests whose client waits for `100 Continue` before it sends the body. */
export const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Resolves with the whole body, decoded if it was compressed. Rejects with SERVE_BODY_TOO_LARGE, SERVE_REQUEST_TIMEOUT,
 * SERVE_BAD_BODY or the error of `place`, while the rest may still be arriving; with SERVE_CANCELLED if the client
 * disconnects first. `onPiece` gets each piece as it arrives, decoded; an error that it throws refuses the body.
 */
export function receiveBody(
  request: IncomingMessage,
  limits: BodyLimits,
  place: Admission,
  onPiece?: (piece: Buffer) => void,
): Promise<Body> {
  awaitingContinue.get(request)?.writeContinue();
  return new Promise((resolve, reject) => {
    const body = new Body(limits.announcedBytes);
    const codings = codingsOf(request);
    const source = codings.length === 0 ? request : decodeBody(request, codings);
    const watched = watchBody(limits.bodyTimeoutMs, () => fail(new ServeError('SERVE_REQUEST_TIMEOUT')));
    let done = false;

    // The listeners stay: removing three costs a call 3 us, and they do nothing once `done` is true.
    function fail(error: Error): void {
      if (done) return;
      done = true;
      unwatchBody(watched);
      if (source !== request) source.destroy();
      reject(error);
    }
    place.begin(fail);
    if (source !== request) {
      watchEncoded(request, limits.maxBodyBytes, watched, fail);
      source.on('error', (cause) => fail(decodingFailed(codings, cause)));
    }
    source.on('data', (piece: Buffer) => {
      if (done) return;
      if (source === request) noteBytes(watched, piece.length);
      if (body.bytes + piece.length > limits.maxBodyBytes) {
        fail(tooLarge(limits.maxBodyBytes));
        return;
      }
      try {
        place.grow(piece.length);
        if (done) return;
        body.keep(piece);
        onPiece?.(piece);
      } catch (thrown) {
        fail(thrown as Error);
      }
    });
    source.on('end', () => {
      if (done) return;
      done = true;
      unwatchBody(watched);
      place.complete();
      body.end();
      resolve(body);
    });
    request.on('close', () => {
      if (done || request.readableEnded) return; // every request closes; an error costs 5 us
      fail(new ServeError('SERVE_CANCELLED'));
    });
  });
}

/**
 * Counts the bytes of a compressed body as they arrive, for the client's pace, and bounds them: many bytes may decode
 * to nothing.
 */
function watchEncoded(
  request: IncomingMessage,
  maxBytes: number,
  watched: WatchedBody,
  fail: (error: ServeError) => void,
): void {
  let bytes = 0;
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    noteBytes(watched, piece.length);
    if (bytes > maxBytes) fail(tooLarge(maxBytes));
  });
}

function tooLarge(maxBodyBytes: number): ServeError {
  return new ServeError(
    'SERVE_BODY_TOO_LARGE',
    `The body is larger than ${formatBytes(maxBodyBytes)} (--max-body).`,
  );
}

const DECODERS = new Map([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
]);

/** The value of `Accept-Encoding`. */
export const SUPPORTED_CODINGS = 'gzip, deflate';

/** No client means to apply more codings than this to one body. */
const MAX_CODINGS = 3;

/**
 * A decoder takes one piece at a time: each write costs a trip to zlib's threads, however small it is. `JoinedRequest` joins the
 * pieces that arrive in the meantime. Chunks of 16 KiB, the default, would make four times as many trips.
 */
const OPTIONS = { writableHighWaterMark: 1, chunkSize: 64 * 1024 };

const NO_CODINGS: readonly string[] = [];

/**
 * Returns the codings of the body in the order in which they were applied; empty if there are none. @throws
 * SERVE_UNSUPPORTED_CODING
 */
export function codingsOf({ headers }: Pick<IncomingMessage, 'headers'>): readonly string[] {
  const content = headers['content-encoding'];
  const transfer = headers['transfer-encoding'];
  if (content === undefined && (transfer === undefined || transfer === 'chunked')) return NO_CODINGS;
  const names = [...namesIn(content), ...namesIn(transfer)].filter(
    (name) => name !== '' && name !== 'identity' && name !== 'chunked',
  );
  const unknown = names.find((name) => !DECODERS.has(name));
  if (unknown === undefined && names.length <= MAX_CODINGS) return names;
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
function decodeBody(request: IncomingMessage, codings: readonly string[]): Readable {
  const decoders = codings.map((coding) => (DECODERS.get(coding) as typeof createGunzip)(OPTIONS)).reverse();
  const [first, last] = [decoders[0], decoders.at(-1)] as [Gunzip, Gunzip];
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
function decodingFailed(codings: readonly string[], cause: Error): ServeError {
  return new ServeError(
    'SERVE_BAD_BODY',
    `The body is not valid ${codings.join(', ')}: ${asSentence(cause.message)}`,
    { cause },
  );
}

/** 8 kbit/s is less than any link that people use today, and a client that keeps to it still ends a 30 kB body in 30 s. */
const LEAST_BYTES_PER_S = 1000;

/** The average rate counts only after this time: a client may need a while to begin. */
const RATE_GRACE_MS = 30_000;

/** A check that is later than this was delayed by this process, which was busy or suspended. */
const LATE_MS = 1000;

/** A body that is arriving. */
export interface WatchedBody {
  readonly pauseLimitMs: number;
  readonly onTooSlow: () => void;
  /** Index in `arriving`. */
  index: number;
  bytes: number;
  /** Time in which this process read nothing is added to both: it does not count against the client. */
  sinceMs: number;
  lastByteAtMs: number;
}

/** An array, not a Set: a Set that fills and empties all the time is rebuilt all the time, and its old tables keep requests alive. */
const arriving: WatchedBody[] = [];
let timer: NodeJS.Timeout | null = null;
let dueAtMs = 0;
let intervalMs = 0;

/**
 * Checks that the body makes progress: no pause may be longer than the limit, and the average rate may not be below a minimum.
 * One timer checks all bodies: a timer for each would cost 1 us per call. `onTooSlow` is called at most a tenth of the pause limit, or 1 s, late, and perhaps more
 * than once.
 */
export function watchBody(pauseLimitMs: number, onTooSlow: () => void): WatchedBody {
  const nowMs = performance.now();
  const index = arriving.length;
  const body = { pauseLimitMs, onTooSlow, index, bytes: 0, sinceMs: nowMs, lastByteAtMs: nowMs };
  arriving.push(body);
  if (timer === null) {
    intervalMs = Math.min(1000, pauseLimitMs / 10);
    dueAtMs = nowMs + intervalMs;
    timer = setInterval(checkBodies, intervalMs);
  }
  return body;
}

export function noteBytes(body: WatchedBody, bytes: number): void {
  body.bytes += bytes;
  body.lastByteAtMs = performance.now();
}

export function unwatchBody(body: WatchedBody): void {
  const last = arriving.pop() as WatchedBody;
  if (last === body) return;
  arriving[body.index] = last;
  last.index = body.index;
}

function checkBodies(): void {
  const nowMs = performance.now();
  const lateMs = nowMs - dueAtMs;
  dueAtMs = nowMs + intervalMs;
  for (const body of [...arriving]) {
    if (lateMs > LATE_MS) {
      body.sinceMs += lateMs;
      body.lastByteAtMs += lateMs;
    }
    if (isTooSlow(body, nowMs)) body.onTooSlow();
  }
  if (arriving.length > 0 || timer === null) return;
  clearInterval(timer);
  timer = null;
}

function isTooSlow({ pauseLimitMs, bytes, sinceMs, lastByteAtMs }: WatchedBody, nowMs: number): boolean {
  if (nowMs - lastByteAtMs >= pauseLimitMs) return true;
  const ageMs = nowMs - sinceMs;
  return ageMs > RATE_GRACE_MS && bytes < (LEAST_BYTES_PER_S * ageMs) / 1000;
}
