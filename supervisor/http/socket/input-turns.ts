/**
 * Bounds how long the input of one client holds up others. A read of 64 KiB holds up to 1,700 pipelined requests, or a
 * body's 11,000 chunks of one byte, and Node's parser handles them all in one turn of the event loop: 300 such
 * connections stop everyone for seconds.
 *
 * 1. A request on a connection that owes no answer, with no body or one of a known length, passes at once, at no cost.
 * 2. Pipelined requests count. After `TURN_REQUESTS` of them, on all connections together, or when the turn has no time
 *    left (`shared-turns.ts`), the parser is stopped in the middle of its input, and the rest of that goes back into the
 *    socket.
 * 3. The parser is also stopped at the head of a chunked body, which it then gets in slices, the smaller the more pieces
 *    they hold.
 * 4. In later turns the connections with such input go on in rotation, a few requests or slices each.
 * 5. What waits of the body of a client that has left is thrown away.
 * 6. A connection with more than `MAX_UNANSWERED` requests ends after the answers to these.
 * 7. A request with more than `MAX_FIELDS` header fields is refused.
 *
 * Pausing the socket or the parser in a request handler does not end the read. What does is the parser's own code for
 * "stop here" as the result of a head. Node reports it as a `clientError`, with the number of bytes that were read.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  REFUSE_HEAD,
  STOP_HERE,
  currentResponse,
  isPausedByNode,
  isUpgrade,
  parserOf,
  sendsNoMore,
  startReading,
  stopReading,
  type Parser,
} from './node-internals.js';
import { piecesReceived, type JoinedRequest } from './joined-request.js';
import { hasLastAnswer, onceAnswered } from './request-facts.js';
import { turns } from './shared-turns.js';

/** Pipelined requests of all connections that one turn of the event loop hands over: about a millisecond. */
const TURN_REQUESTS = 32;

/** Header fields of one request. With 900, which 16 KB hold, a request takes ten times as long as with few. */
const MAX_FIELDS = 200;

/** Header fields that count as a request more: Node's objects of them take as much memory, and some time. */
const FIELDS_PER_REQUEST = 20;

/** Pieces of chunked bodies of all connections in one turn; the slice that exceeds it is handled to its end. */
const TURN_PIECES = 256;

/** Requests that a connection has handed over when its turn comes. */
const SHARE_REQUESTS = 8;

/** Requests of one connection that are answered before it ends. */
const MAX_UNANSWERED = 256;

/** Input of all connections that waits for its turn. Beyond it a connection is cut. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;

/** Bytes of slices in one turn; the slice that exceeds it is handled to its end. */
const TURN_BYTES = 256 * 1024;

/** The parser gets input in slices of this size; what it leaves of one goes back into the socket. */
export const SLICE_BYTES = 8 * 1024;

/** The first slices of a connection, and those behind one of many pieces: 256 chunks of one byte. */
const MIN_SLICE_BYTES = 1536;

/** The slice behind one with at most so many pieces is twice as large. */
const FEW_PIECES = 64;

/** A client of an ended connection has this long to read its answers. */
const END_GRACE_MS = 1000;

/** A connection that has pipelined requests, or a chunked body. */
interface Pipeline {
  readonly socket: Socket;
  readonly parser: Parser;
  /** Requests behind the first one whose answers are not written yet. */
  unanswered: number;
  /** Requests handed over of the input that is being read, however many turns that takes. */
  ofInput: number;
  /** The turn in which a request was last handed over. */
  turn: number;
  /** Input bytes that wait for their turn; null if none do. */
  waitingBytes: number | null;
  /** Size of its next slice. */
  sliceBytes: number;
  /** The request whose chunked body is being received, or was the last. */
  chunked: JoinedRequest | null;
  /** Its input is being handed to the parser by `#goOn`. */
  goesOn: boolean;
  /** The parser was stopped by its last request, and has not reported where. */
  isStopped: boolean;
  /** Nothing more is read; it ends after its answers. */
  isEnding: boolean;
  /** Another parser reads the connection: an upgrade was declined. */
  isOver: boolean;
  /** Its input comes through the stream, no longer from the kernel to the parser directly. */
  isStreamed: boolean;
}

/** An error that Node's parser reports. */
export interface ParserError extends NodeJS.ErrnoException {
  /** The piece of input in which the parser stopped. */
  readonly rawPacket?: Buffer;
  /** Bytes of that piece before it stopped. */
  readonly bytesParsed?: number;
}

/** Shares the turns of the event loop among the connections of all listeners of a server. */
export class InputTurns {
  readonly #pipelines = new WeakMap<Socket, Pipeline>();
  /** The connections whose input waits, in rotation. */
  readonly #waiting: Pipeline[] = [];
  readonly #maxWaitingBytes: number;
  #waitingBytes = 0;
  #turn = 0;
  /** Requests that this turn may still hand over. */
  #left = TURN_REQUESTS;
  /** Pieces of bodies that this turn may still take. */
  #piecesLeft = TURN_PIECES;
  /** Bytes of slices that this turn may still take. */
  #bytesLeft = TURN_BYTES;
  /** The parser is stopped when so many are left. */
  #stopAt = 0;
  #isTurnScheduled = false;
  /** The connection whose request is being handed over. */
  #current: Pipeline | null = null;

  constructor(maxWaitingBytes = MAX_WAITING_BYTES) {
    this.#maxWaitingBytes = maxWaitingBytes;
  }

  /** Call this with a connection as soon as Node's parser reads it. */
  watch(socket: Socket): void {
    const parser = parserOf(socket);
    const handOver = parser?.onIncoming;
    if (parser === null || typeof handOver !== 'function') return;
    const before = this.#pipelines.get(socket);
    if (before !== undefined) before.isOver = true; // Node may give the connection the same parser again
    this.#pipelines.delete(socket);
    let pipeline: Pipeline | null = null;
    let bytesBefore = -1;
    parser.onIncoming = (request, keepsAlive) => {
      if (fieldsOf(request) > MAX_FIELDS) return REFUSE_HEAD; // before `headers` is read, which is what takes long
      // An answer may be finished although the read that its request came with is not: with more than 32 headers, Node lets
      // other things happen in the midst of a head.
      const { bytesRead } = socket;
      const isBehind =
        currentResponse(socket) !== null || bytesRead === bytesBefore || pipeline?.goesOn === true;
      bytesBefore = bytesRead;
      const isChunked = request.headers['transfer-encoding'] !== undefined;
      if (!isBehind && !isChunked) return handOver(request, keepsAlive);
      pipeline ??= this.#newPipeline(socket, parser);
      const asksForUpgrade = isUpgrade(request); // the parser would not report where it stopped
      const result = isBehind
        ? this.#take(pipeline, request, () => handOver(request, keepsAlive))
        : handOver(request, keepsAlive);
      if (!isChunked || asksForUpgrade || (result !== 0 && result !== STOP_HERE)) return result;
      pipeline.chunked = request as JoinedRequest;
      pipeline.isStopped = true;
      return STOP_HERE;
    };
  }

  /** Call this with the response to each request that Node hands over. */
  count(response: ServerResponse): void {
    const pipeline = this.#current;
    if (pipeline === null) return;
    const weight = weightOf(response.req);
    pipeline.unanswered += weight;
    response.once('close', () => (pipeline.unanswered -= weight));
  }

  /**
   * Whether this error only means that the parser was stopped by `watch`; the rest of its input is then handed over
   * later.
   */
  keepsRest(error: ParserError, socket: Socket): boolean {
    const pipeline = this.#pipelines.get(socket);
    if (error.code !== 'HPE_PAUSED' || pipeline === undefined || error.rawPacket === undefined) return false;
    // Node resumes a socket whenever a request's body is read. A parser that is still stopped then reads nothing, and
    // reports a meaningless number.
    const rest = error.rawPacket.subarray(pipeline.isStopped ? error.bytesParsed : 0);
    pipeline.isStopped = false;
    if (pipeline.isEnding) socket.pause();
    else if (rest.length === 0 && socket.readableLength === 0 && !awaitsChunks(pipeline))
      finishRequest(pipeline.parser, rest);
    else this.#putBack(pipeline, rest);
    return true;
  }

  #newPipeline(socket: Socket, parser: Parser): Pipeline {
    const pipeline: Pipeline = {
      socket,
      parser,
      unanswered: 0,
      ofInput: 0,
      turn: this.#turn,
      waitingBytes: null,
      sliceBytes: MIN_SLICE_BYTES,
      chunked: null,
      goesOn: false,
      isStopped: false,
      isEnding: false,
      isOver: false,
      isStreamed: false,
    };
    this.#pipelines.set(socket, pipeline);
    return pipeline;
  }

  /** Hands a request over that is behind another, or ends its connection. Returns the result for the parser. */
  #take(pipeline: Pipeline, request: IncomingMessage, handOver: () => number): number {
    const { socket } = pipeline;
    if (!pipeline.goesOn && pipeline.turn !== this.#turn) pipeline.ofInput = 0;
    pipeline.turn = this.#turn;
    // The first request of the connection was not counted.
    const isFull = Math.max(pipeline.unanswered, pipeline.ofInput) >= MAX_UNANSWERED - 1;
    if (isFull || hasLastAnswer(socket)) endAfterAnswers(pipeline);
    if (pipeline.isEnding || socket.destroyed) return STOP_HERE;
    const weight = weightOf(request);
    pipeline.ofInput += weight;
    this.#left -= weight;
    this.#scheduleTurn();
    const asksForUpgrade = isUpgrade(request);
    this.#current = pipeline;
    const result = handOver();
    this.#current = null;
    if (result !== 0 || (this.#left > this.#stopAt && turns.hasTime())) return result;
    if (!asksForUpgrade) {
      pipeline.isStopped = true;
      return STOP_HERE;
    }
    // The parser would not report where it stops. Newer versions of Node come here if the request has a body.
    if (!isUpgrade(request)) socket.destroy();
    return result;
  }

  /** Puts input back into the socket until the connection's turn comes. */
  #putBack(pipeline: Pipeline, rest: Buffer): void {
    const { socket } = pipeline;
    if (socket.destroyed) return;
    if (!pipeline.isStreamed) {
      pipeline.isStreamed = true;
      socket.on('data', ignore).off('data', ignore); // Node then passes the input through the stream
    }
    socket.pause();
    if (rest.length > 0) socket.unshift(rest);
    if (pipeline.waitingBytes === null) this.#waiting.push(pipeline);
    this.#waitingBytes += socket.readableLength - (pipeline.waitingBytes ?? 0);
    pipeline.waitingBytes = socket.readableLength;
    if (this.#waitingBytes > this.#maxWaitingBytes && !isUploading(pipeline)) socket.destroy();
    // Of a client that sends no more, whole requests are answered, and what waits of a body is thrown away.
    if (!awaitsChunks(pipeline)) stopReading(socket);
    this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled) return;
    this.#isTurnScheduled = true;
    setImmediate(() => this.#beginTurn());
  }

  #beginTurn(): void {
    this.#isTurnScheduled = false;
    this.#turn += 1;
    this.#left = TURN_REQUESTS;
    this.#piecesLeft = TURN_PIECES;
    this.#bytesLeft = TURN_BYTES;
    // One goes on in any case: others may use up the time of every turn.
    for (
      let count = this.#waiting.length, isFirst = true;
      count > 0 && (isFirst || this.#hasTime());
      count -= 1
    ) {
      isFirst = false;
      const pipeline = this.#waiting.shift() as Pipeline;
      this.#waitingBytes -= pipeline.waitingBytes ?? 0;
      pipeline.waitingBytes = null;
      this.#goOn(pipeline);
    }
    if (this.#waiting.length > 0) this.#scheduleTurn();
  }

  #hasTime(): boolean {
    return this.#left > 0 && this.#mayTakeSlice() && turns.hasTime();
  }

  /** Hands some of the input to the parser; all of it if it holds few requests and pieces. */
  #goOn(pipeline: Pipeline): void {
    const { socket, parser } = pipeline;
    if (awaitsChunks(pipeline) && sendsNoMore(socket) && socket.readableLength > SLICE_BYTES)
      socket.destroy();
    startReading(socket);
    if (!isReadable(pipeline)) return;
    pipeline.goesOn = true;
    this.#stopAt = Math.max(0, this.#left - SHARE_REQUESTS);
    parser.resume();
    while (
      isReadable(pipeline) &&
      pipeline.waitingBytes === null &&
      this.#mayTakeSlice() &&
      hasInput(pipeline)
    ) {
      const { readableLength } = socket;
      this.#takeSlice(pipeline);
      if (socket.readableLength >= readableLength) break; // the rest waits for another turn
    }
    this.#stopAt = 0;
    pipeline.goesOn = false;
    if (isReadable(pipeline) && pipeline.waitingBytes === null) this.#endTurn(pipeline);
  }

  #mayTakeSlice(): boolean {
    return this.#piecesLeft > 0 && this.#bytesLeft > 0;
  }

  #takeSlice(pipeline: Pipeline): void {
    const { socket } = pipeline;
    const bytes = Math.min(pipeline.sliceBytes, socket.readableLength);
    const before = piecesReceived();
    socket.read(bytes); // emits `data`, to the parser
    const pieces = piecesReceived() - before;
    this.#piecesLeft -= pieces;
    this.#bytesLeft -= bytes;
    pipeline.sliceBytes =
      pieces > FEW_PIECES ? MIN_SLICE_BYTES : Math.min(2 * pipeline.sliceBytes, SLICE_BYTES);
  }

  #endTurn(pipeline: Pipeline): void {
    const { socket, parser, chunked } = pipeline;
    // A stopped parser reports the next input, which then waits for its turn.
    if (awaitsChunks(pipeline)) parser.pause();
    else if (socket.readableLength === 0) pipeline.ofInput = 0;
    if (chunked?.isFull === true) return; // Node resumes the socket when more of the body is taken
    if (socket.readableLength > 0) this.#putBack(pipeline, EMPTY);
    else socket.resume();
  }
}

const EMPTY = Buffer.alloc(0);

/** Whether the rest of a chunked body is still to come. */
function awaitsChunks({ chunked }: Pipeline): boolean {
  return chunked?.complete === false;
}

/** Whether its input is a body that the server still wants. */
function isUploading(pipeline: Pipeline): boolean {
  return awaitsChunks(pipeline) && currentResponse(pipeline.socket)?.writableEnded === false;
}

/** Whether there is input that can be taken now. */
function hasInput({ socket, chunked }: Pipeline): boolean {
  return socket.readableLength > 0 && chunked?.isFull !== true;
}

function ignore(): void {}

/** Number of requests as which this one counts. */
function weightOf(request: IncomingMessage): number {
  return 1 + Math.floor(fieldsOf(request) / FIELDS_PER_REQUEST);
}

function fieldsOf({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.length / 2;
}

/** Whether Node's parser takes input. It does not while answers wait for a slow client; Node goes on by itself then. */
function isReadable({ socket, parser, isEnding, isOver }: Pipeline): boolean {
  return !isEnding && !isOver && !socket.destroyed && parserOf(socket) === parser && !isPausedByNode(socket);
}

/** Completes the request at whose head the parser was stopped: it has no body, or its body has not arrived. */
function finishRequest(parser: Parser, empty: Buffer): void {
  parser.resume();
  parser.execute(empty);
}

/** Ends the connection after its answers. What it still sends is not read. */
function endAfterAnswers(pipeline: Pipeline): void {
  if (pipeline.isEnding) return;
  pipeline.isEnding = true;
  const { socket } = pipeline;
  onceAnswered(socket, () => {
    socket.end();
    setTimeout(() => socket.destroy(), END_GRACE_MS).unref();
  });
}
