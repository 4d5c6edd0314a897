/**
 * Collects the fragments of bodies, several at a time, and tells when one is whole.
 * Bytes are not copied: a body stays the list of pieces it arrived in until its reader joins them, once.
 */
import { ServeError } from './errors.js';

interface Partial<T> {
  readonly owner: T;
  readonly pieces: Buffer[];
  missing: number;
}

export class BodyAssembler<T> {
  readonly #open = new Map<number, Partial<T>>();

  /** Starts a body of `bodyBytes`. Returns its pieces if it is whole already, else null: fragments will follow. */
  start(id: number, owner: T, bodyBytes: number, pieces: Buffer[]): Buffer[] | null {
    const missing = bodyBytes - totalBytes(pieces);
    if (missing < 0) throw broken(`body of call ${id} is longer than announced`);
    if (this.#open.has(id)) throw broken(`a second body for call ${id}`);
    if (missing === 0) return pieces;
    this.#open.set(id, { owner, pieces, missing });
    return null;
  }

  /** Adds a fragment. Returns the owner and all pieces once the body is whole. */
  add(id: number, pieces: Buffer[]): { owner: T; pieces: Buffer[] } | null {
    const body = this.#open.get(id);
    if (body === undefined) throw broken(`a body fragment for unknown call ${id}`);
    const bytes = totalBytes(pieces);
    if (bytes === 0 || bytes > body.missing)
      throw broken(`a fragment of ${bytes} bytes where ${body.missing} are missing`);
    body.pieces.push(...pieces);
    body.missing -= bytes;
    if (body.missing > 0) return null;
    this.#open.delete(id);
    return { owner: body.owner, pieces: body.pieces };
  }

  /** Forgets an unfinished body. Returns its owner if there was one. */
  drop(id: number): T | null {
    const body = this.#open.get(id);
    this.#open.delete(id);
    return body?.owner ?? null;
  }
}

export function totalBytes(pieces: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

/** One contiguous buffer; the piece itself when there is only one. */
export function joinPieces(pieces: readonly Buffer[]): Buffer {
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
}

/** Cuts the pieces of a call frame into one list per call. @throws SERVE_PROTOCOL if the sizes do not add up */
export function splitPieces(pieces: readonly Buffer[], sizes: readonly number[]): Buffer[][] {
  const announced = sizes.reduce((sum, size) => sum + size, 0);
  const bytes = totalBytes(pieces);
  if (announced !== bytes)
    throw broken(`a frame with ${bytes} body bytes where its calls announce ${announced}`);
  if (sizes.length === 1) return [pieces as Buffer[]];
  const joined = joinPieces(pieces);
  let offset = 0;
  return sizes.map((size) => {
    offset += size;
    return size === 0 ? [] : [joined.subarray(offset - size, offset)];
  });
}

function broken(detail: string): ServeError {
  return new ServeError('SERVE_PROTOCOL', undefined, { detail });
}
