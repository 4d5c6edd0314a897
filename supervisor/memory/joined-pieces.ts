/**
 * Joins small pieces of bytes while they wait. A Buffer costs some 350 bytes besides its content, in V8's heap and outside,
 * so a body that is sent in pieces of one byte would take 350 times the memory that is counted for it.
 */
const MIN_BLOCK_BYTES = 1024;

export class JoinedPieces {
  #block: Buffer = EMPTY;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** All added bytes; valid until the next `add`. */
  get view(): Buffer {
    return this.#block.subarray(0, this.#bytes);
  }

  /** Copies the piece. Holds at most twice the added bytes, or `MIN_BLOCK_BYTES`. */
  add(piece: Buffer): void {
    const bytes = this.#bytes + piece.length;
    if (bytes > this.#block.length) this.#grow(bytes);
    piece.copy(this.#block, this.#bytes);
    this.#bytes = bytes;
  }

  /** Returns all added bytes, which the caller then owns, and starts empty. */
  take(): Buffer {
    const { view } = this;
    this.#block = EMPTY;
    this.#bytes = 0;
    return view;
  }

  #grow(leastBytes: number): void {
    const block = Buffer.allocUnsafeSlow(Math.max(MIN_BLOCK_BYTES, leastBytes, 2 * this.#bytes));
    this.#block.copy(block, 0, 0, this.#bytes);
    this.#block = block;
  }
}

const EMPTY = Buffer.alloc(0);
