/**
 * A request's body, within its limits: on size, on pauses, on the least rate. A small one stays the pieces it arrived in,
 * which go to the worker's pipe as they are; one that is announced as large is copied to slabs as it arrives.
 */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { MIN_SLAB_BYTES, slabs } from '../../memory/slabs.js';
import { formatBytes } from '../../options/units.js';
import { codingsOf, damaged, decodeBody } from './decode-body.js';
import { unwatchBody, watchBody, type WatchedBody } from './body-clock.js';

export interface BodyLimits {
  /** Size of the body as `announcedBytes` tells it; 0 if unknown. */
  readonly announcedBytes: number;
  readonly maxBodyBytes: number;
  /** The longest pause that the client may make. */
  readonly bodyTimeoutMs: number;
}

export interface Body {
  readonly pieces: Buffer[];
  readonly bytes: number;
}

/**
 * Resolves with the whole body, decoded if it came compressed. Rejects with SERVE_BODY_TOO_LARGE, SERVE_REQUEST_TIMEOUT,
 * SERVE_BAD_BODY or what `place` refuses it with, while the rest may still be arriving; with SERVE_CANCELLED if the client
 * leaves before.
 */
export function receiveBody(request: IncomingMessage, limits: BodyLimits, place: Admission): Promise<Body> {
  return new Promise((resolve, reject) => {
    const memory = new BodyMemory(limits.announcedBytes);
    const codings = codingsOf(request);
    const source = codings.length === 0 ? request : decodeBody(request, codings);
    const watched: WatchedBody = watchBody(limits.bodyTimeoutMs, () =>
      fail(new ServeError('SERVE_REQUEST_TIMEOUT')),
    );
    let done = false;

    // The listeners stay: taking three away costs a call 3 us, and `done` makes them deaf.
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
      watchCoded(request, limits.maxBodyBytes, watched, fail);
      source.on('error', (cause) => fail(damaged(codings, cause)));
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
        if (!done) memory.keep(piece);
      } catch (thrown) {
        fail(thrown as Error);
      }
    });
    source.on('end', () => {
      if (done) return;
      stop();
      place.complete();
      memory.endJoined();
      resolve(memory);
    });
    request.on('close', () => {
      if (done || request.readableEnded) return; // every request closes; an error costs 5 us
      fail(new ServeError('SERVE_CANCELLED'));
    });
  });
}

/** Bytes as they come count for the client's pace, and are bounded too: there may be many that decode to nothing. */
function watchCoded(
  request: IncomingMessage,
  maxBytes: number,
  watched: WatchedBody,
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

/** Memory is taken as the bytes arrive, whatever was announced. */
const SLAB_BYTES = 1024 * 1024;

/**
 * A body of more pieces than this has its small ones joined. A piece costs some 250 bytes besides its content, so that a
 * body in chunks of one byte would take 250 times the memory that it counts for, and a second to send on.
 */
const FEW_PIECES = 16;

/** A piece of this size is cheaper to keep than to copy. */
const LARGE_PIECE_BYTES = 8 * 1024;
const JOINED_BYTES = 64 * 1024;

class BodyMemory implements Body {
  readonly pieces: Buffer[] = [];
  bytes = 0;
  readonly #announcedBytes: number;
  /** Bytes of the last piece that are filled; it is a slab if the body is large, or the joined piece. */
  #filled = 0;
  /** Small pieces are copied to the last piece at present. */
  #isJoining = false;

  constructor(announced: number) {
    this.#announcedBytes = announced;
  }

  keep(piece: Buffer): void {
    this.bytes += piece.length;
    if (this.#announcedBytes < MIN_SLAB_BYTES) {
      this.#keepOrJoin(piece);
      return;
    }
    // Node's parser may be told to be lax.
    if (this.bytes > this.#announcedBytes) throw new ServeError('SERVE_BAD_REQUEST');
    for (let at = 0; at < piece.length;) at += this.#fill(piece, at);
  }

  /** The last piece takes no more: call it when the body is whole. */
  endJoined(): void {
    if (!this.#isJoining) return;
    this.#isJoining = false;
    this.pieces.push((this.pieces.pop() as Buffer).subarray(0, this.#filled));
  }

  #keepOrJoin(piece: Buffer): void {
    const isLarge = piece.length >= LARGE_PIECE_BYTES;
    if (isLarge || (this.#isJoining && this.#filled + piece.length > JOINED_BYTES)) this.endJoined();
    if (isLarge || this.pieces.length < FEW_PIECES) {
      this.pieces.push(piece);
      return;
    }
    if (!this.#isJoining) {
      this.#isJoining = true;
      this.#filled = 0;
      this.pieces.push(Buffer.allocUnsafeSlow(JOINED_BYTES));
    }
    this.#filled += piece.copy(this.pieces.at(-1) as Buffer, this.#filled);
  }

  #fill(piece: Buffer, from: number): number {
    let slab = this.pieces.at(-1);
    if (slab === undefined || this.#filled === slab.length) {
      const done = this.pieces.length * SLAB_BYTES;
      slab = slabs.take(Math.min(SLAB_BYTES, this.#announcedBytes - done));
      this.pieces.push(slab);
      this.#filled = 0;
    }
    const copied = piece.copy(slab, this.#filled, from);
    this.#filled += copied;
    return copied;
  }
}

function tooLarge(maxBodyBytes: number): ServeError {
  return new ServeError(
    'SERVE_BODY_TOO_LARGE',
    `The body is larger than ${formatBytes(maxBodyBytes)} (--max-body).`,
  );
}
