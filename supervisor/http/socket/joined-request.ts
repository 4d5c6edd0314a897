/**
 * A request whose body leaves time for other clients as it arrives, and takes no more memory than its bytes while it is not
 * read yet, for example while its model is being loaded or its decoding waits. Node would keep a Buffer for each chunk, up to
 * 75,000 of one byte on Node 26: 26 MB per request that no limit counts.
 *
 * libuv reads up to 32 times 64 KiB from every socket that has so much: eight clients with large bodies would keep all others
 * waiting for 16 MB, some 20 ms of work. A body that has had its share of a turn waits, and goes on in a later turn, in
 * rotation with the others.
 */
import { IncomingMessage } from 'node:http';
import { JoinedPieces } from '../../memory/joined-pieces.js';

/** A piece of this size is cheaper to keep than to copy. */
const LARGE_PIECE_BYTES = 8 * 1024;

/** Bytes of one body in one turn; the piece that exceeds it is taken. */
const SHARE_BYTES = 256 * 1024;

/** Bodies that go on in one turn. One that has not waited yet may take a piece besides. */
const SHARES = 2;

let pieces = 0;

/** Pieces of bodies that the parser has passed on since the process began. */
export function piecesReceived(): number {
  return pieces;
}

export class JoinedRequest extends IncomingMessage {
  /** Bytes that arrived after those in the stream's own buffer; empty while that buffer is empty. */
  #waiting: JoinedPieces | null = null;
  /** The turn in which its body was last read, and bytes read in it. */
  #turn = 0;
  #turnBytes = 0;
  #awaitsTurn = false;
  /** Its reader asked for more while it awaited its turn. */
  #isWanted = false;

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
    if (this.#waiting !== null) this.#pushWaiting(this.#waiting);
    const takesMore = super.push(piece);
    if (piece === null || piece.length < LARGE_PIECE_BYTES || this.#isChunked) return takesMore;
    return this.#hasTurn(piece.length) && takesMore; // false: Node pauses the connection
  }

  /** Called by Node to go on with the connection. */
  override _read(bytes: number): void {
    if (this.#awaitsTurn) this.#isWanted = true;
    else super._read(bytes);
  }

  /** Its turn has come. Returns whether it reads on. */
  goOn(): boolean {
    this.#awaitsTurn = false;
    const readsOn = this.#isWanted && !this.complete && !this.destroyed;
    this.#isWanted = false;
    if (readsOn) super._read(0);
    return readsOn;
  }

  override read(bytes?: number): unknown {
    if (this.#waiting !== null) this.#pushWaiting(this.#waiting);
    return super.read(bytes);
  }

  /** `input-turns.ts` cuts these. */
  get #isChunked(): boolean {
    return this.headers['transfer-encoding'] !== undefined;
  }

  #hasTurn(bytes: number): boolean {
    if (this.#turn !== turn) this.#turnBytes = 0;
    this.#turn = turn;
    this.#turnBytes += bytes;
    left -= bytes;
    scheduleTurn();
    const isTimeLeft = left > 0 && this.#turnBytes < SHARE_BYTES;
    if (isTimeLeft || this.#awaitsTurn) return isTimeLeft;
    this.#awaitsTurn = true;
    waiting.push(this);
    return false;
  }

  #pushWaiting(waiting: JoinedPieces): void {
    this.#waiting = null;
    super.push(waiting.take());
  }
}

/** Bodies that wait for their turn. */
const waiting: JoinedRequest[] = [];
let turn = 0;
let left = SHARES * SHARE_BYTES;
let isTurnScheduled = false;

function scheduleTurn(): void {
  if (isTurnScheduled) return;
  isTurnScheduled = true;
  setImmediate(beginTurn);
}

function beginTurn(): void {
  isTurnScheduled = false;
  turn += 1;
  left = SHARES * SHARE_BYTES;
  let shares = SHARES;
  while (shares > 0 && waiting.length > 0) if (waiting.shift()?.goOn() === true) shares -= 1;
  if (waiting.length > 0) scheduleTurn();
}
