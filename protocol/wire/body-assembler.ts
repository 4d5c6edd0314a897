/**
 * Collects the fragments of bodies, several bodies at a time, and returns each one when it is complete. A body that
 * came in one frame stays in the pieces it arrived in. A body of several frames gets its own memory and is read or
 * copied into it as it arrives: otherwise its chunks, twice its size with their slack, would live until a full garbage
 * collection.
 */
import { protocolError } from '../errors.js';

/** Memory for one body. `release` gives it back, when nothing reads or writes it any more. */
export interface BodyMemory {
  readonly buffer: Buffer;
  release(): void;
}

interface Partial<T> {
  readonly owner: T;
  readonly body: Buffer;
  readonly release: () => void;
  filled: number;
}

export class BodyAssembler<T> {
  readonly #open = new Map<number, Partial<T>>();
  readonly #allocate: (bytes: number) => BodyMemory;
  /** The memory of the body that starts next, if its first fragment lies in it. */
  #next: BodyMemory | null = null;

  /** `allocate` returns memory for a body of several frames; its content does not matter. */
  constructor(allocate: (bytes: number) => BodyMemory = fromHeap) {
    this.#allocate = allocate;
  }

  /** Returns memory for the first fragment of a body, which `start` takes next; null if it has only one. */
  firstRoom(bodyBytes: number, bytes: number): Buffer | null {
    if (bytes >= bodyBytes) return null;
    this.#next = this.#allocate(bodyBytes);
    return this.#next.buffer.subarray(0, bytes);
  }

  /** Starts a body of `bodyBytes`. Returns its pieces if it is complete already; null if fragments will follow. */
  start(id: number, owner: T, bodyBytes: number, pieces: Buffer[]): Buffer[] | null {
    const missing = bodyBytes - totalBytes(pieces);
    if (missing < 0) throw protocolError(`body of call ${id} is longer than announced`);
    if (this.#open.has(id)) throw protocolError(`a second body for call ${id}`);
    if (missing === 0) return pieces;
    const { buffer, release } = this.#next ?? this.#allocate(bodyBytes);
    this.#next = null;
    const partial = { owner, body: buffer, release, filled: 0 };
    append(partial, pieces);
    this.#open.set(id, partial);
    return null;
  }

  /** Returns memory for the next fragment of `bytes` bytes; null if the body has none. Errors are left to `add`. */
  room(id: number, bytes: number): Buffer | null {
    const partial = this.#open.get(id);
    if (partial === undefined || bytes > partial.body.length - partial.filled) return null;
    return partial.body.subarray(partial.filled, partial.filled + bytes);
  }

  /**
   * Adds a fragment, which may lie in its `room` already. Returns the owner and the body, as one piece, once it is
   * complete.
   */
  add(id: number, pieces: readonly Buffer[]): { owner: T; pieces: Buffer[]; release: () => void } | null {
    const partial = this.#open.get(id);
    if (partial === undefined) throw protocolError(`a body fragment for unknown call ${id}`);
    const { owner, body, release, filled } = partial;
    const bytes = totalBytes(pieces);
    const missing = body.length - filled;
    if (bytes === 0 || bytes > missing)
      throw protocolError(`a fragment of ${bytes} bytes where ${missing} are missing`);
    append(partial, pieces);
    if (bytes < missing) return null;
    this.#open.delete(id);
    return { owner, pieces: [body], release };
  }

  /** Drops an unfinished body. Returns its owner, or null if the body is unknown. */
  drop(id: number): T | null {
    const body = this.#open.get(id);
    this.#open.delete(id);
    return body?.owner ?? null;
  }
}

function fromHeap(bytes: number): BodyMemory {
  return { buffer: Buffer.allocUnsafeSlow(bytes), release() {} };
}

function append(partial: Partial<unknown>, pieces: readonly Buffer[]): void {
  for (const piece of pieces) {
    if (!isInPlace(partial, piece)) partial.body.set(piece, partial.filled);
    partial.filled += piece.length;
  }
}

function isInPlace({ body, filled }: Partial<unknown>, piece: Buffer): boolean {
  return piece.buffer === body.buffer && piece.byteOffset === body.byteOffset + filled;
}

export function totalBytes(pieces: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

/** Returns one contiguous buffer; a single piece is returned itself. */
export function joinPieces(pieces: readonly Buffer[]): Buffer {
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
}

/** Cuts the pieces of a call frame into one list per call. @throws SERVE_PROTOCOL if the sizes do not add up */
export function splitPieces(pieces: readonly Buffer[], sizes: readonly number[]): Buffer[][] {
  const announced = sizes.reduce((sum, size) => sum + size, 0);
  const bytes = totalBytes(pieces);
  if (announced !== bytes)
    throw protocolError(`a frame with ${bytes} body bytes where its calls announce ${announced}`);
  if (sizes.length === 1) return [pieces as Buffer[]];
  const joined = joinPieces(pieces);
  let offset = 0;
  return sizes.map((size) => {
    offset += size;
    return size === 0 ? [] : [joined.subarray(offset - size, offset)];
  });
}
