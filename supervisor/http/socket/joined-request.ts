/**
 * A request whose body takes no more memory than its bytes while it is not read yet, for example while its model is
 * being loaded or its decoding waits. Node would keep a Buffer for each chunk, up to 75,000 of one byte on Node 26: 26
 * MB per request that no limit counts.
 */
import { IncomingMessage } from 'node:http';
import { JoinedPieces } from '../../memory/joined-pieces.js';

/** A piece of this size is cheaper to keep than to copy. */
const LARGE_PIECE_BYTES = 8 * 1024;

let pieces = 0;

/** Pieces of bodies that the parser has passed on since the process began. */
export function piecesReceived(): number {
  return pieces;
}

export class JoinedRequest extends IncomingMessage {
  /** Bytes that arrived after those in the stream's own buffer; empty while that buffer is empty. */
  #waiting: JoinedPieces | null = null;

  /** Whether nothing more should be read until some of the body is taken. */
  get isFull(): boolean {
    return this.readableLength + (this.#waiting?.bytes ?? 0) >= this.readableHighWaterMark;
  }

  /** Takes bytes from Node's parser; null at the end of the body. */
  override push(piece: Buffer | null): boolean {
    pieces += 1;
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
