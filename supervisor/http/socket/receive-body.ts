/** Receives a request's body within its limits: on size, on pauses, on the average rate. */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { formatBytes } from '../../options/units.js';
import { codingsOf, decodingFailed, decodeBody } from './decode-body.js';
import { BodyMemory, type Body } from './body-memory.js';
import { unwatchBody, watchBody, type BodyClock } from './body-clock.js';

export interface BodyLimits {
  /** Size of the body as returned by `announcedBytes`; 0 if unknown. */
  readonly announcedBytes: number;
  readonly maxBodyBytes: number;
  /** The longest pause that the client may make. */
  readonly bodyTimeoutMs: number;
}

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
  return new Promise((resolve, reject) => {
    const memory = new BodyMemory(limits.announcedBytes);
    const codings = codingsOf(request);
    const source = codings.length === 0 ? request : decodeBody(request, codings);
    const watched = watchBody(limits.bodyTimeoutMs, () => fail(new ServeError('SERVE_REQUEST_TIMEOUT')));
    let done = false;

    // The listeners stay: removing three costs a call 3 us, and they do nothing once `done` is true.
    function stop(): void {
      done = true;
      unwatchBody(watched);
    }
    function fail(error: Error): void {
      if (done) return;
      stop();
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
      if (source === request) watched.onBytes(piece.length);
      if (memory.bytes + piece.length > limits.maxBodyBytes) {
        fail(tooLarge(limits.maxBodyBytes));
        return;
      }
      try {
        place.grow(piece.length);
        if (done) return;
        memory.keep(piece);
        onPiece?.(piece);
      } catch (thrown) {
        fail(thrown as Error);
      }
    });
    source.on('end', () => {
      if (done) return;
      stop();
      place.complete();
      memory.end();
      resolve(memory);
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
  watched: BodyClock,
  fail: (error: ServeError) => void,
): void {
  let bytes = 0;
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    watched.onBytes(piece.length);
    if (bytes > maxBytes) fail(tooLarge(maxBytes));
  });
}

/**
 * Returns the announced Content-Length; 0 if the size is not known (chunked, compressed). @throws SERVE_BODY_TOO_LARGE,
 * SERVE_UNSUPPORTED_CODING before a byte is read
 */
export function announcedBytes(request: IncomingMessage, maxBodyBytes: number): number {
  const header = request.headers['content-length'];
  const bytes = header === undefined ? 0 : Number(header);
  if (bytes > maxBodyBytes) throw tooLarge(maxBodyBytes);
  return codingsOf(request).length === 0 ? bytes : 0;
}

function tooLarge(maxBodyBytes: number): ServeError {
  return new ServeError(
    'SERVE_BODY_TOO_LARGE',
    `The body is larger than ${formatBytes(maxBodyBytes)} (--max-body).`,
  );
}
