/**
 * Frames on a byte stream: `u32 headLength, u32 bodyLength` (little-endian), the head, the body. Input: a socket's
 * chunks. Output: the head for `codec.ts`, and the body in the pieces it came in. Bodies are not copied: pieces are
 * views of the chunks. A long body whose memory is allocated already (`roomFor`) is read directly into it.
 */
import { protocolError } from '../errors.js';
import { MAX_FRAGMENT_BYTES, MAX_HEAD_BYTES } from './limits.js';

export const FRAME_PREFIX_BYTES = 8;

/** Fragments below this size are not worth a lookup of their memory. */
const MUCH_BYTES = 16 * 1024;

/**
 * The head is `source` from `start` to `end`. Most heads of a chunk share one source, and with it the state that a
 * decoder keeps per source. Source and pieces belong to the receiver; their memory is never reused.
 */
type OnHead<Extra, Result> = (source: Buffer, start: number, end: number, extra: Extra) => Result;

/**
 * Cuts a byte stream into frames. `push` calls back once per complete frame, in order, synchronously.
 * @throws SERVE_PROTOCOL on a head or body over the limits, before anything is allocated for it.
 */
export class FrameReader {
  readonly #onFrame: OnHead<Buffer[], void>;
  readonly #roomFor: OnHead<number, Buffer | null>;
  readonly #prefix = Buffer.alloc(FRAME_PREFIX_BYTES);
  #prefixFilled = 0;
  #source: Buffer | null = null;
  #headStart = 0;
  #headEnd = 0;
  #headMissing = 0;
  #pieces: Buffer[] = [];
  #bodyMissing = 0;
  /** The memory of the body that is arriving. */
  #target: Buffer | null = null;

  /**
   * `onFrame`: called with the head of each frame and the pieces of its body. `roomFor`: returns the memory for the body of
   * the frame with this head, of so many bytes; null if there is none.
   */
  constructor(onFrame: OnHead<Buffer[], void>, roomFor: OnHead<number, Buffer | null> = () => null) {
    this.#onFrame = onFrame;
    this.#roomFor = roomFor;
  }

  /** True if the stream may end here without cutting a frame. */
  get atBoundary(): boolean {
    return this.#prefixFilled === 0;
  }

  push(chunk: Buffer): void {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#prefixFilled < FRAME_PREFIX_BYTES) {
        offset = this.#readPrefix(chunk, offset);
      } else if (this.#headMissing > 0) {
        offset = this.#readHead(chunk, offset);
      } else {
        offset = this.#readBody(chunk, offset);
      }
      if (this.#prefixFilled === FRAME_PREFIX_BYTES && this.#headMissing === 0 && this.#bodyMissing === 0) {
        this.#emit();
      }
    }
  }

  /** Memory for the next bytes; null if the body has none of its own. */
  get room(): Buffer | null {
    return this.#target === null ? null : this.#target.subarray(this.#target.length - this.#bodyMissing);
  }

  /** Called instead of `push` when the next `bytes` bytes were read into `room`. */
  filled(bytes: number): void {
    this.#bodyMissing -= bytes;
    if (this.#bodyMissing === 0) this.#emit();
  }

  #readPrefix(chunk: Buffer, offset: number): number {
    const taken = Math.min(FRAME_PREFIX_BYTES - this.#prefixFilled, chunk.length - offset);
    chunk.copy(this.#prefix, this.#prefixFilled, offset, offset + taken);
    this.#prefixFilled += taken;
    if (this.#prefixFilled === FRAME_PREFIX_BYTES) {
      this.#headMissing = this.#prefix.readUInt32LE(0);
      this.#bodyMissing = this.#prefix.readUInt32LE(4);
      if (this.#headMissing === 0 || this.#headMissing > MAX_HEAD_BYTES)
        throw protocolError(`frame head of ${this.#headMissing} bytes; 1 to ${MAX_HEAD_BYTES} are allowed`);
      if (this.#bodyMissing > MAX_FRAGMENT_BYTES)
        throw protocolError(
          `frame body of ${this.#bodyMissing} bytes; at most ${MAX_FRAGMENT_BYTES} are allowed`,
        );
    }
    return offset + taken;
  }

  #readHead(chunk: Buffer, offset: number): number {
    const end = Math.min(offset + this.#headMissing, chunk.length);
    this.#headMissing -= end - offset;
    if (this.#source === null) {
      this.#source = chunk;
      this.#headStart = offset;
      this.#headEnd = end;
    } else {
      // Only a head that is split between two chunks is copied.
      const begin = this.#source.subarray(this.#headStart, this.#headEnd);
      this.#source = Buffer.concat([begin, chunk.subarray(offset, end)]);
      this.#headStart = 0;
      this.#headEnd = this.#source.length;
    }
    if (this.#headMissing === 0 && this.#bodyMissing - (chunk.length - end) >= MUCH_BYTES)
      this.#target = this.#roomFor(this.#source, this.#headStart, this.#headEnd, this.#bodyMissing);
    return end;
  }

  #readBody(chunk: Buffer, offset: number): number {
    const end = Math.min(offset + this.#bodyMissing, chunk.length);
    const { room } = this;
    if (room === null) this.#pieces.push(chunk.subarray(offset, end));
    else chunk.copy(room, 0, offset, end);
    this.#bodyMissing -= end - offset;
    return end;
  }

  #emit(): void {
    const source = this.#source as Buffer;
    const pieces = this.#target === null ? this.#pieces : [this.#target];
    this.#source = null;
    this.#target = null;
    this.#pieces = [];
    this.#prefixFilled = 0;
    this.#onFrame(source, this.#headStart, this.#headEnd, pieces);
  }
}
