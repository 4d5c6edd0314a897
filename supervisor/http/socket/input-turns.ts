/**
 * Bounds how long the input of clients holds up others. A read of 64 KiB holds up to 1,700 pipelined requests, or a
 * body's 11,000 chunks of one byte, and Node's parser handles them all in one turn of the event loop: 300 such
 * connections stop everyone for seconds.
 *
 * 1. A request on a connection that owes no answer, with no body or one of a known length, passes at once, at no cost.
 * 2. `MAX_UNANSWERED` requests ahead of their answers are the last of their connection.
 * 3. A pipelined request stops the parser in the middle of its input once the turn has no time left, and the head of a
 *    chunked body stops it always. The rest of the input goes back into the socket, and on to the parser in slices, in
 *    rotation with other connections.
 * 4. What waits of the body of a client that has left is thrown away.
 * 5. A request with more than `MAX_FIELDS` header fields is refused.
 *
 * Neither pausing the socket or the parser in a request handler nor destroying the socket ends the read. What does is the
 * parser's own code for "stop here" as the result of a head. Node reports it as a `clientError`, with the number of bytes
 * that were read.
 */
import type { ServerResponse } from 'node:http';
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
import { endingConnections } from './request-facts.js';
import { inputTurns } from './shared-turns.js';

/** Requests of one connection that are handed over before the first of them is answered. */
const MAX_UNANSWERED = 32;

/** Header fields of one request. With 900, which 16 KB hold, a request takes ten times as long as with few. */
const MAX_FIELDS = 200;

/** Input of all connections that waits for its turn. Beyond it a connection is cut. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;

/** The parser gets input that waited in slices of this size. */
export const SLICE_BYTES = 8 * 1024;

/** The first slice of a connection, and one behind a slice of more than `FEW_PIECES`: 256 chunks of one byte. */
const MIN_SLICE_BYTES = 1536;
const FEW_PIECES = 64;

/** A client that sent too many requests has this long to read its answers. */
const END_GRACE_MS = 1000;

/** A connection that has pipelined requests, or a chunked body. */
interface Pipeline {
  readonly socket: Socket;
  readonly parser: Parser;
  /** Requests whose answers are not written yet. */
  unanswered: number;
  /** Requests of the input that is being read, however many turns that takes. */
  ofInput: number;
  /** The request whose chunked body is being received, or was the last. */
  chunked: JoinedRequest | null;
  /** Size of its next slice. */
  sliceBytes: number;
  /** Its input waits for its turn. */
  isWaiting: boolean;
  /** The parser was stopped by its last request, and has not reported where. */
  isStopped: boolean;
  /** Nothing more is read: the last answer of the connection is known. */
  isEnding: boolean;
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
  readonly #maxWaitingBytes: number;
  #waitingBytes = 0;

  constructor(maxWaitingBytes = MAX_WAITING_BYTES) {
    this.#maxWaitingBytes = maxWaitingBytes;
  }

  /** Call this with a connection as soon as Node's parser reads it. */
  watch(socket: Socket): void {
    const parser = parserOf(socket);
    const handOver = parser?.onIncoming;
    if (parser === null || typeof handOver !== 'function') return;
    this.#pipelines.delete(socket); // of the parser before, if an upgrade was declined
    let pipeline: Pipeline | null = null;
    let bytesBefore = -1;
    parser.onIncoming = (request, keepsAlive) => {
      if (request.rawHeaders.length > 2 * MAX_FIELDS) return REFUSE_HEAD; // before `headers` is read, which is what takes long
      // An answer may be finished although the read that its request came with is not: with more than 32 headers, Node lets
      // other things happen in the midst of a head.
      const { bytesRead } = socket;
      const isSameRead = bytesRead === bytesBefore;
      bytesBefore = bytesRead;
      const isBehind = isSameRead || currentResponse(socket) !== null || endingConnections.has(socket);
      const isChunked = request.headers['transfer-encoding'] !== undefined;
      if (isBehind || isChunked) pipeline ??= this.#newPipeline(socket, parser, isSameRead);
      if (pipeline !== null && !isSameRead) pipeline.ofInput = 0;
      if (pipeline === null || (!isBehind && !isChunked)) return handOver(request, keepsAlive);
      pipeline.isEnding ||= endingConnections.has(socket);
      if (pipeline.isEnding || socket.destroyed) return STOP_HERE;
      const asksForUpgrade = isUpgrade(request);
      const result = handOver(request, keepsAlive);
      if (asksForUpgrade && isUpgrade(request)) return result; // the parser leaves the connection
      const isTimeUp = isBehind && !inputTurns.hasTime();
      if (result !== 0 || (!isChunked && !isTimeUp)) return result;
      if (asksForUpgrade) {
        // The parser would not report where it stops. Newer versions of Node come here if the request has a body.
        if (isTimeUp) socket.destroy();
        return result;
      }
      if (isChunked) pipeline.chunked = request as JoinedRequest;
      pipeline.isStopped = true;
      return STOP_HERE;
    };
  }

  /** Call this with the response to each request that Node hands over. */
  count(response: ServerResponse): void {
    const pipeline = this.#pipelines.get(response.req.socket);
    if (pipeline === undefined) return;
    pipeline.ofInput += 1;
    owe(pipeline, response);
    if (Math.max(pipeline.unanswered, pipeline.ofInput) < MAX_UNANSWERED) return;
    response.shouldKeepAlive = false; // its head says `Connection: close`
    endingConnections.add(response.req.socket);
    endGently(pipeline.socket);
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

  /** `isSameRead`: a request of the input that is being read was handed over already. */
  #newPipeline(socket: Socket, parser: Parser, isSameRead: boolean): Pipeline {
    const pipeline: Pipeline = {
      socket,
      parser,
      unanswered: 0,
      ofInput: isSameRead ? 1 : 0,
      chunked: null,
      sliceBytes: MIN_SLICE_BYTES,
      isWaiting: false,
      isStopped: false,
      isEnding: false,
      isStreamed: false,
    };
    const first = currentResponse(socket);
    if (first !== null) owe(pipeline, first);
    this.#pipelines.set(socket, pipeline);
    return pipeline;
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
    // Of a client that sends no more, whole requests are answered, and what waits of a body is thrown away.
    if (!awaitsChunks(pipeline)) stopReading(socket);
    if (pipeline.isWaiting) return;
    pipeline.isWaiting = true;
    const bytes = socket.readableLength;
    this.#waitingBytes += bytes;
    if (this.#waitingBytes > this.#maxWaitingBytes && !isUploading(pipeline)) socket.destroy();
    void inputTurns.own().then(() => {
      this.#waitingBytes -= bytes;
      pipeline.isWaiting = false;
      this.#goOn(pipeline);
    });
  }

  /** Hands a slice of the input to the parser; the rest waits for another turn. */
  #goOn(pipeline: Pipeline): void {
    const { socket, parser } = pipeline;
    if (awaitsChunks(pipeline) && sendsNoMore(socket) && socket.readableLength > SLICE_BYTES)
      socket.destroy();
    startReading(socket);
    if (!this.#isReadable(pipeline) || isFull(pipeline)) return;
    parser.resume();
    const before = piecesReceived();
    socket.read(Math.min(pipeline.sliceBytes, socket.readableLength)); // emits `data`, to the parser
    const hasMany = piecesReceived() - before > FEW_PIECES;
    pipeline.sliceBytes = hasMany ? MIN_SLICE_BYTES : SLICE_BYTES;
    if (hasMany) inputTurns.end(); // with a second such slice in a turn, others wait for twice as long
    if (pipeline.isWaiting || !this.#isReadable(pipeline)) return;
    // A stopped parser reports the next input, which then waits for its turn.
    if (awaitsChunks(pipeline)) parser.pause();
    if (isFull(pipeline)) return; // Node resumes the socket when more of the body is taken
    if (socket.readableLength > 0) this.#putBack(pipeline, EMPTY);
    else socket.resume();
  }

  /** Whether Node's parser takes input. It does not while answers wait for a slow client; Node goes on by itself then. */
  #isReadable(pipeline: Pipeline): boolean {
    const { socket, parser, isEnding } = pipeline;
    const isCurrent = this.#pipelines.get(socket) === pipeline; // Node may give the connection the same parser again
    return (
      isCurrent && !isEnding && !socket.destroyed && parserOf(socket) === parser && !isPausedByNode(socket)
    );
  }
}

const EMPTY = Buffer.alloc(0);

function ignore(): void {}

/** Counts this response until it is written. */
function owe(pipeline: Pipeline, response: ServerResponse): void {
  pipeline.unanswered += 1;
  response.once('close', () => (pipeline.unanswered -= 1));
}

/** Whether the rest of a chunked body is still to come. */
function awaitsChunks({ chunked }: Pipeline): boolean {
  return chunked?.complete === false;
}

/** Whether nothing more should be read until some of the body is taken. */
function isFull({ chunked }: Pipeline): boolean {
  return chunked?.isFull === true;
}

/** Whether its input is a body that the server still wants. */
function isUploading(pipeline: Pipeline): boolean {
  return awaitsChunks(pipeline) && currentResponse(pipeline.socket)?.writableEnded === false;
}

/** Completes the request at whose head the parser was stopped: it has no body, or its body has not arrived. */
function finishRequest(parser: Parser, empty: Buffer): void {
  parser.resume();
  parser.execute(empty);
}

/** Makes Node's end of the connection behind its last answer one that leaves the client time to read. A reset would not. */
function endGently(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    setTimeout(() => socket.destroy(), END_GRACE_MS).unref();
  };
}
