/**
 * The memory of a request's body. A small body stays in the pieces it arrived in, which go to the worker's pipe as they
 * are; a body that is announced as large, or becomes large, is copied to slabs.
 */
import { ServeError } from '../../../protocol/errors.js';
import { JoinedPieces } from '../../memory/joined-pieces.js';
import { MIN_SLAB_BYTES, slabs, type Lease } from '../../memory/slabs.js';

/** Slabs are taken as the bytes arrive, whatever length was announced. */
const SLAB_BYTES = 1024 * 1024;

/** Slabs of a body whose length is not known: the last one may stay almost empty. */
const SMALL_SLAB_BYTES = MIN_SLAB_BYTES;

/**
 * In a body of more pieces than this, the small ones are joined. A piece costs some 250 bytes besides its content, so a
 * body in chunks of one byte would take 250 times the memory that it counts for, and a second to send to the worker.
 */
const FEW_PIECES = 16;

/** A piece of this size is cheaper to keep than to copy. */
const LARGE_PIECE_BYTES = 8 * 1024;
const JOINED_BYTES = 64 * 1024;

/** Bytes that `join` copies at least before it pauses. */
const JOIN_SLICE_BYTES = 256 * 1024;

export class Body {
  pieces: Buffer[] = [];
  bytes = 0;
  readonly #announcedBytes: number;
  /** The last pieces are lent; the first may not be. */
  #leases: Lease[] = [];
  /** Bytes of the last slab that are filled. */
  #filled = 0;
  /** Small pieces that become the next piece; null if there are none. */
  #joined: JoinedPieces | null = null;

  constructor(announced: number) {
    this.#announcedBytes = announced;
  }

  keep(piece: Buffer): void {
    this.bytes += piece.length;
    const isAnnounced = this.#announcedBytes >= MIN_SLAB_BYTES;
    // Node's parser has a lenient mode (--insecure-http-parser).
    if (isAnnounced && this.bytes > this.#announcedBytes) throw new ServeError('SERVE_BAD_REQUEST');
    if (isAnnounced || this.bytes > MIN_SLAB_BYTES) {
      this.#endJoined();
      for (let at = 0; at < piece.length;) at += this.#fill(piece, at);
      return;
    }
    const isLarge = piece.length >= LARGE_PIECE_BYTES;
    if (isLarge || (this.#joined?.bytes ?? 0) + piece.length > JOINED_BYTES) this.#endJoined();
    if (isLarge || this.pieces.length < FEW_PIECES) {
      this.pieces.push(piece);
      return;
    }
    this.#joined ??= new JoinedPieces();
    this.#joined.add(piece);
  }

  /** Returns the memory of a large body; call it once nothing reads the body any more. */
  release(): void {
    for (const lease of this.#leases) lease.release();
  }

  /** Call this when the body is complete. */
  end(): void {
    this.#endJoined();
    if (this.#leases.length > 0) this.pieces.push((this.pieces.pop() as Buffer).subarray(0, this.#filled));
  }

  /** Joins the pieces into one, in slices. The memory of each is returned as soon as it is copied. */
  *join(): Generator<void, Buffer> {
    const [first] = this.pieces;
    if (first !== undefined && this.pieces.length === 1) return first;
    const lease = slabs.take(this.bytes);
    const parts = this.pieces;
    const leases = this.#leases;
    this.pieces = [lease.buffer];
    this.#leases = [lease];
    const firstLent = parts.length - leases.length;
    let filled = 0;
    let pausedAt = 0;
    for (const [i, part] of parts.entries()) {
      filled += part.copy(lease.buffer, filled);
      leases[i - firstLent]?.release();
      if (filled - pausedAt < JOIN_SLICE_BYTES) continue;
      pausedAt = filled;
      yield;
    }
    return lease.buffer;
  }

  #endJoined(): void {
    if (this.#joined !== null) this.pieces.push(this.#joined.take());
    this.#joined = null;
  }

  #fill(piece: Buffer, from: number): number {
    let slab = this.#leases.at(-1)?.buffer;
    if (slab === undefined || this.#filled === slab.length) {
      const lease = slabs.take(this.#nextSlabBytes());
      slab = lease.buffer;
      this.#leases.push(lease);
      this.pieces.push(slab);
      this.#filled = 0;
    }
    const copied = piece.copy(slab, this.#filled, from);
    this.#filled += copied;
    return copied;
  }

  #nextSlabBytes(): number {
    if (this.#announcedBytes < MIN_SLAB_BYTES) return SMALL_SLAB_BYTES;
    return Math.min(SLAB_BYTES, this.#announcedBytes - this.pieces.length * SLAB_BYTES);
  }
}
