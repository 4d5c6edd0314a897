/**
 * A request whose body takes no more memory than its bytes while nobody reads it: it waits for its model to be loaded,
 * say, or for its turn to be decoded. Node keeps a Buffer for each chunk until then, up to 75,000 of one byte on Node 26,
 * which are 26 MB per request that no limit counts.
 */
import { IncomingMessage } from 'node:http';
import { JoinedPieces } from '../../memory/joined-pieces.js';

/** A piece of this size is cheaper to keep than to copy. */
const LARGE_PIECE_BYTES = 8 * 1024;

export class JoinedRequest extends IncomingMessage {
  /** What came after the bytes that the stream itself holds; empty while that holds none. */
  #waiting: JoinedPieces | null = null;

  /** Takes bytes from Node's parser; null once the body is whole. */
  override push(piece: Buffer | null): boolean {
    if (piece !== null && this.readableLength > 0 && piece.length < LARGE_PIECE_BYTES) {
      this.#waiting ??= new JoinedPieces();
      this.#waiting.add(piece);
      return this.readableLength + this.#waiting.bytes < this.readableHighWaterMark;
    }
    this.#pushWaiting();
    return super.push(piece);
  }

  override read(bytes?: number): unknown {
    this.#pushWaiting();
    return super.read(bytes);
  }

  #pushWaiting(): void {
    if (this.#waiting === null) return;
    const waiting = this.#waiting.take();
    this.#waiting = null;
    super.push(waiting);
  }
}
