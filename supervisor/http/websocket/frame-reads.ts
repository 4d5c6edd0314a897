/**
 * Follows the frames of a WebSocket's client (RFC 6455 section 5.2) in front of the parser of `ws`, for two reasons:
 *
 * 1. The parser removes the reads of a frame from the front of an array, which takes time with the square of their
 *    number: 65,536 reads of one byte hold up the event loop for nine seconds. So small reads in the middle of a frame
 *    are joined before they reach it.
 * 2. Each fragment of an incomplete message takes memory of its own, so fragments are counted.
 */

/** Memory that the parser takes for each fragment besides its bytes: 107 bytes on Node 20. */
export const FRAGMENT_OVERHEAD_BYTES = 128;

/** The reads that are joined: as many, or as many bytes, whichever comes first. */
const MAX_JOINED_READS = 256;
const MAX_JOINED_BYTES = 16 * 1024;

const MAX_HEAD_BYTES = 14;
const CLOSE_OPCODE = 8;

export class FrameReads {
  readonly #head = new Uint8Array(MAX_HEAD_BYTES);
  #headBytes = 0;
  #payloadLeftBytes = 0;
  #fragments = 0;
  #reads: Buffer[] = [];
  #readBytes = 0;
  #isCloseFrame = false;
  #isOver = false;

  /** Fragments of the incomplete message; 0 between messages. */
  get fragments(): number {
    return this.#fragments;
  }

  /** Takes one read, and returns what the parser gets now; null while the middle of a frame is collected. */
  take(read: Buffer): Buffer | null {
    if (this.#isOver) return null; // the parser has ended
    const isMiddle = this.#headBytes === 0 && read.length < this.#payloadLeftBytes;
    this.#follow(read);
    this.#reads.push(read);
    this.#readBytes += read.length;
    const isFull = this.#reads.length >= MAX_JOINED_READS || this.#readBytes >= MAX_JOINED_BYTES;
    return isMiddle && !isFull ? null : this.rest();
  }

  /** Returns what is collected. */
  rest(): Buffer | null {
    const [first = null] = this.#reads;
    const joined = this.#reads.length > 1 ? Buffer.concat(this.#reads) : first;
    this.#reads = [];
    this.#readBytes = 0;
    return joined;
  }

  /** Drops what is collected and all that follows: the client has broken the protocol. */
  stop(): void {
    this.#isOver = true;
    this.#reads = [];
  }

  #follow(read: Buffer): void {
    for (let offset = 0; offset < read.length && !this.#isOver;) {
      if (this.#payloadLeftBytes > 0) {
        const bytes = Math.min(this.#payloadLeftBytes, read.length - offset);
        this.#payloadLeftBytes -= bytes;
        offset += bytes;
      } else {
        this.#head[this.#headBytes] = read[offset] as number;
        this.#headBytes += 1;
        offset += 1;
        if (this.#headBytes >= 2 && this.#headBytes === headLength(this.#head)) this.#onHead();
      }
      this.#isOver = this.#isCloseFrame && this.#headBytes === 0 && this.#payloadLeftBytes === 0;
    }
  }

  #onHead(): void {
    const first = this.#head[0] as number;
    const opcode = first & 0x0f;
    this.#headBytes = 0;
    this.#payloadLeftBytes = payloadLength(this.#head);
    this.#isCloseFrame = opcode === CLOSE_OPCODE;
    if (opcode >= CLOSE_OPCODE) return; // a control frame may stand between fragments
    const isLast = (first & 0x80) !== 0;
    if (isLast) this.#fragments = 0;
    else if (this.#payloadLeftBytes > 0) this.#fragments += 1;
  }
}

function headLength(head: Uint8Array): number {
  const second = head[1] as number;
  const short = second & 0x7f;
  const longBytes = short < 126 ? 0 : short === 126 ? 2 : 8;
  const maskBytes = (second & 0x80) === 0 ? 0 : 4;
  return 2 + longBytes + maskBytes;
}

function payloadLength(head: Uint8Array): number {
  const short = (head[1] as number) & 0x7f;
  const view = new DataView(head.buffer);
  if (short < 126) return short;
  return short === 126 ? view.getUint16(2) : Number(view.getBigUint64(2));
}
