/**
 * A request's body, under a size limit and a limit on pauses. A small one stays the pieces it arrived in, and they go
 * to the worker's pipe as they are; a large one whose size was announced is gathered in one slab.
 */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import { MIN_SLAB_BYTES, slabs } from '../../memory/slabs.js';
import { formatBytes } from '../../options/units.js';

export interface BodyLimits {
  /** As `announcedBytes` tells; 0 if unknown. */
  readonly announcedBytes: number;
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
}

export interface BodyEvents {
  /** Called for each piece, before it is kept. @throws ServeError to refuse the rest */
  onBytes(bytes: number): void;
  onWhole(pieces: Buffer[], bytes: number): void;
  /** The body cannot be taken; the request may still be arriving. Not called if the client has left. */
  onFailed(error: ServeError): void;
}

/** Calls exactly one of `onWhole` and `onFailed`, once, or neither if the client leaves before. */
export function readBody(request: IncomingMessage, limits: BodyLimits, events: BodyEvents): void {
  const pieces: Buffer[] = [];
  let slab: Buffer | null = null;
  let bytes = 0;
  let done = false;
  const watched: WatchedBody = {
    dueMs: performance.now() + limits.bodyTimeoutMs,
    place: 0,
    onPause: () => fail(new ServeError('SERVE_REQUEST_TIMEOUT')),
  };
  watchPauses(watched, limits.bodyTimeoutMs);

  // The listeners stay: taking three away costs a call 3 us, and `done` makes them deaf.
  function stop(): void {
    done = true;
    unwatch(watched);
  }
  function fail(error: ServeError): void {
    stop();
    events.onFailed(error);
  }
  function keep(piece: Buffer): void {
    if (limits.announcedBytes < MIN_SLAB_BYTES) {
      pieces.push(piece);
      return;
    }
    if (bytes > limits.announcedBytes) throw new ServeError('SERVE_BAD_REQUEST'); // Node's parser may be told to be lax
    slab ??= slabs.take(limits.announcedBytes);
    slab.set(piece, bytes - piece.length);
  }
  function onData(piece: Buffer): void {
    if (done) return;
    bytes += piece.length;
    watched.dueMs = performance.now() + limits.bodyTimeoutMs;
    if (bytes > limits.maxBodyBytes) {
      fail(tooLarge(limits.maxBodyBytes));
      return;
    }
    try {
      events.onBytes(piece.length);
      keep(piece);
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      fail(thrown);
    }
  }
  function onEnd(): void {
    if (done) return;
    stop();
    events.onWhole(slab === null ? pieces : [slab.subarray(0, bytes)], bytes);
  }
  function onClose(): void {
    if (!done) stop();
  }
  request.on('data', onData);
  request.on('end', onEnd);
  request.on('close', onClose);
}

/** Content-Length as announced; 0 if absent (chunked). @throws SERVE_BODY_TOO_LARGE before a byte is read */
export function announcedBytes(request: IncomingMessage, maxBodyBytes: number): number {
  const header = request.headers['content-length'];
  const bytes = header === undefined ? 0 : Number(header);
  if (bytes > maxBodyBytes) throw tooLarge(maxBodyBytes);
  return bytes;
}

interface WatchedBody {
  dueMs: number;
  /** Where it is in `watchedBodies`. */
  place: number;
  onPause(): void;
}

/**
 * All bodies now arriving, looked at by one timer: a timer for each would cost 1 us per call. An array, not a Set:
 * a Set that fills and empties all the time is rebuilt all the time, and its old tables keep requests alive.
 */
const watchedBodies: WatchedBody[] = [];
let watch: NodeJS.Timeout | null = null;

/** A pause is noticed at most a tenth of the limit, or 1 s, late. */
function watchPauses(body: WatchedBody, limitMs: number): void {
  body.place = watchedBodies.push(body) - 1;
  watch ??= setInterval(checkPauses, Math.min(1000, limitMs / 10));
}

function unwatch(body: WatchedBody): void {
  const last = watchedBodies.pop() as WatchedBody;
  if (last === body) return;
  watchedBodies[body.place] = last;
  last.place = body.place;
}

function checkPauses(): void {
  const nowMs = performance.now();
  for (const body of [...watchedBodies]) if (body.dueMs <= nowMs) body.onPause();
  if (watchedBodies.length > 0 || watch === null) return;
  clearInterval(watch);
  watch = null;
}

function tooLarge(maxBodyBytes: number): ServeError {
  return new ServeError(
    'SERVE_BODY_TOO_LARGE',
    `The body is larger than ${formatBytes(maxBodyBytes)} (--max-body).`,
  );
}
