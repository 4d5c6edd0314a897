/**
 * Joins small pieces of bytes while they wait. A Buffer costs some 350 bytes besides its content, in V8's heap and
 * outside, so that what a client sends in pieces of one byte would take 350 times the memory that it counts for.
 */
const MIN_BLOCK_BYTES = 1024;

export class JoinedPieces {
  #block: Buffer = EMPTY;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** All that was added; what is added later may change it. */
  get view(): Buffer {
    return this.#block.subarray(0, this.#bytes);
  }

  /** Copies the piece. At most twice the bytes that were added are held, or `MIN_BLOCK_BYTES`. */
  add(piece: Buffer): void {
    const bytes = this.#bytes + piece.length;
    if (bytes > this.#block.length) this.#grow(bytes);
    piece.copy(this.#block, this.#bytes);
    this.#bytes = bytes;
  }

  /** Gives all that was added away, and begins anew. */
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
