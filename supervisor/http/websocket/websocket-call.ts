/**
 * One WebSocket, a call that lasts as long as it: messages from the client wait here until the worker takes them,
 * those of the app go out as they come. Handshake, pings and the closing are the front's, so that a worker deep in a
 * model keeps nobody waiting for them.
 */
import type { IncomingMessage } from 'node:http';
import type { RawData, WebSocket } from 'ws';
import { joinPieces } from '../../../protocol/body-assembler.js';
import { ServeError, protocolError, shuttingDown } from '../../../protocol/errors.js';
import {
  DATA_OVERHEAD_BYTES,
  MAX_FRAGMENT_BYTES,
  STREAM_WINDOW_BYTES,
  type DataPart,
  type Route,
} from '../../../protocol/messages.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { Job, type Conversation, type Sink } from '../../dispatch/job.js';
import { formatMs } from '../../options/units.js';
import type { Front } from '../front.js';
import { describeCall } from '../request-facts.js';
import { closeCodeOf, closeReason } from './close.js';

/** Common proxies cut a connection on which nothing moved for 60 s. */
const PING_MS = 30_000;

/** A message of the client's on its way to the worker, in parts. */
interface Outgoing {
  readonly bytes: Buffer;
  readonly text: boolean;
  offset: number;
}

export class WebSocketCall implements Sink, Conversation {
  readonly #front: Front;
  readonly #request: IncomingMessage;
  readonly #ws: WebSocket;
  readonly #job: Job;
  /** What the worker takes now. */
  #creditBytes = 0;
  #outbox: Outgoing[] = [];
  #outboxBytes = 0;
  /** Of a message that is not whole yet; about, as a read may bring the beginning of the next one. */
  #partialBytes = 0;
  /** Of both, as the dispatcher counts it. */
  #countedBytes = 0;
  /** Parts of the app's messages that the connection has not taken. */
  #untaken = 0;
  #stallTimer: NodeJS.Timeout | null = null;
  #idleTimer: NodeJS.Timeout | null = null;
  readonly #pingTimer: NodeJS.Timeout;
  #isAlive = true;
  #isWaiting = false;
  #goingAway: ServeError | null = null;
  #clientLeft: string | null = null;
  #appClosed = false;

  constructor(front: Front, request: IncomingMessage, path: string, ws: WebSocket, requestId: string) {
    this.#front = front;
    this.#request = request;
    this.#ws = ws;
    const target = { route: path, path, format: 'websocket' } as const;
    const call = describeCall(request, requestId, target, null, 0);
    this.#job = new Job(call, [], { acceptedAtMs: performance.now(), deadlineAtMs: null }, this);
    this.#job.conversation = this;
    this.#job.settleRoute = (route) => (isWebSocketRoute(route) ? null : new ServeError('SERVE_NOT_FOUND'));
    // Before the one that makes messages of what came.
    request.socket.prependListener('data', (chunk: Buffer) => this.#onBytes(chunk.length));
    ws.on('message', (data, isBinary) => this.#onMessage(data, !isBinary));
    ws.on('close', (code) => this.#onClosed(`the client closed the connection (${code})`));
    ws.on('error', () => {}); // a frame that breaks the rules: `close` follows
    ws.on('pong', () => (this.#isAlive = true));
    this.#pingTimer = setInterval(() => this.#ping(), PING_MS);
  }

  submit(admission: Admission): void {
    this.#front.model.dispatcher.submit(this.#job, admission);
  }

  goAway(why: ServeError): void {
    this.#goingAway ??= why;
    if (this.#isWaiting) this.#giveUp(this.#goingAway, this.#goingAway.message);
  }

  data({ text, last }: DataPart, pieces: Buffer[], taken: () => void): void {
    const bytes = joinPieces(pieces);
    this.#untaken += 1;
    this.#watchReader();
    this.#ws.send(bytes, { binary: !text, fin: last }, () => {
      this.#untaken -= 1;
      this.#watchReader();
      taken();
    });
  }

  credit(bytes: number): void {
    this.#creditBytes += bytes;
    this.#sendOn();
  }

  waiting(): void {
    this.#isWaiting = true;
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer); // an app may wait more than once at a time
    const goingAway = this.#goingAway ?? (this.#front.closing() ? shuttingDown() : null);
    if (goingAway !== null) {
      this.goAway(goingAway);
      return;
    }
    const { websocketIdleTimeout } = this.#front.model.options;
    const said = `The client sent nothing for ${formatMs(websocketIdleTimeout)} (--websocket-idle-timeout).`;
    const error = new ServeError('SERVE_REQUEST_TIMEOUT', said);
    this.#idleTimer = setTimeout(() => this.#giveUp(error, said), websocketIdleTimeout);
  }

  close(code: number, reason: string): void {
    this.#appClosed = true;
    this.#ws.close(code, reason);
  }

  end(): void {
    this.#ws.close(1000);
    this.#onSettled(null);
  }

  fail(_job: Job, error: ServeError): void {
    this.#ws.close(closeCodeOf(error), closeReason(error));
    this.#onSettled(error);
  }

  /** What only a worker sends that takes the call for another kind. */
  reply(job: Job): void {
    this.fail(job, new ServeError('SERVE_OUTPUT_INVALID'));
  }

  head(): void {
    this.#giveUp(protocolError('a stream on a WebSocket'), 'it is a WebSocket');
  }

  chunk(_job: Job, _pieces: Buffer[], taken: () => void): void {
    taken();
  }

  /** What is held for a worker counts against `--queue-bytes`, like the bodies of calls that wait. */
  #onBytes(bytes: number): void {
    this.#partialBytes += bytes;
    this.#count();
  }

  #count(): void {
    if (this.#job.settled) return;
    const heldBytes = this.#partialBytes + this.#outboxBytes;
    try {
      this.#front.model.dispatcher.countSaid(heldBytes - this.#countedBytes);
      this.#countedBytes = heldBytes;
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      this.#giveUp(thrown, thrown.message);
    }
  }

  #onMessage(data: RawData, text: boolean): void {
    this.#partialBytes = 0;
    if (this.#job.settled || this.#appClosed) return;
    this.#isWaiting = false;
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    const bytes = data as Buffer; // of a server with the default `binaryType`
    this.#outbox.push({ bytes, text, offset: 0 });
    this.#outboxBytes += bytes.length + DATA_OVERHEAD_BYTES;
    this.#sendOn();
  }

  /** As much as the worker takes. What waits here is bounded: the client is not read while it is a window's worth. */
  #sendOn(): void {
    for (let [message] = this.#outbox; message !== undefined; [message] = this.#outbox) {
      const { holder } = this.#job;
      if (this.#creditBytes <= 0 || holder === null) break;
      const { bytes, text, offset } = message;
      const part = bytes.subarray(offset, offset + MAX_FRAGMENT_BYTES);
      message.offset += part.length;
      const last = message.offset === bytes.length;
      this.#creditBytes -= part.length + DATA_OVERHEAD_BYTES;
      holder.sendData(this.#job, { text, last }, part);
      if (!last) continue;
      this.#outbox.shift();
      this.#outboxBytes -= bytes.length + DATA_OVERHEAD_BYTES;
    }
    this.#count();
    if (this.#outboxBytes >= STREAM_WINDOW_BYTES) this.#ws.pause();
    else if (this.#ws.isPaused) this.#ws.resume();
    if (this.#outbox.length === 0 && this.#clientLeft !== null) this.#giveUpLeft();
  }

  #onClosed(why: string): void {
    clearInterval(this.#pingTimer);
    this.#clientLeft = why;
    // What it sent before it left is still for the app, if that has begun.
    if (this.#outbox.length === 0 || this.#job.state === 'queued') this.#giveUpLeft();
  }

  #giveUpLeft(): void {
    if (!this.#appClosed) this.#giveUp(new ServeError('SERVE_CANCELLED'), this.#clientLeft as string);
  }

  #giveUp(error: ServeError, reason: string): void {
    this.#front.model.dispatcher.giveUp(this.#job, error, reason);
  }

  #onSettled(error: ServeError | null): void {
    for (const timer of [this.#idleTimer, this.#stallTimer]) if (timer !== null) clearTimeout(timer);
    this.#outbox = [];
    this.#outboxBytes = 0;
    this.#front.model.dispatcher.countSaid(-this.#countedBytes);
    this.#ws.resume(); // or the client's own close would not be read
    this.#front.onSettled(this.#request, this.#job, 101, error);
  }

  /** A client that does not read for as long as this holds its worker for nothing. */
  #watchReader(): void {
    if (this.#stallTimer !== null) clearTimeout(this.#stallTimer);
    this.#stallTimer = null;
    if (this.#untaken === 0 || this.#job.settled) return;
    this.#stallTimer = setTimeout(
      () => this.#giveUp(new ServeError('SERVE_SLOW_READER'), 'the client stopped reading'),
      this.#front.options.stallTimeout,
    );
  }

  #ping(): void {
    if (this.#ws.isPaused) return; // its pong would not be read
    if (!this.#isAlive) {
      this.#ws.terminate();
      return;
    }
    this.#isAlive = false;
    this.#ws.ping();
  }
}

export function isWebSocketRoute(route: Route | undefined): boolean {
  return route?.kind === 'websocket';
}
