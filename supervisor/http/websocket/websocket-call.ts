/**
 * Runs one WebSocket as a call that lasts as long as the connection: messages from the client wait in the outbox until
 * the worker takes them, messages of the app are sent as they come. The front handles handshake, pings and closing, so
 * that they do not wait for a worker that is busy in a model.
 */
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import { joinPieces } from '../../../protocol/wire/body-assembler.js';
import {
  ServeError,
  protocolError,
  shuttingDown,
  isAppsRefusal,
  type ErrorCode,
} from '../../../protocol/errors.js';
import type { DataPart } from '../../../protocol/wire/messages.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { Call, type Conversation, type Sink } from '../../dispatch/call.js';
import { formatMs } from '../../options/units.js';
import type { Model } from '../../models/model.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan, NamedTarget } from '../call/call-plan.js';
import type { Answer } from '../socket/unsent-connection.js';
import { describeCall } from '../call/answer-call.js';
import { statusOf } from '../answer/house-error.js';
import { FrameReads } from './frame-reads.js';
import { SilenceLimit, startHeartbeat } from './liveness.js';
import { Outbox } from './outbox.js';
import { MAX_CLOSE_REASON_BYTES } from '../../../protocol/wire/limits.js';

/**
 * Both sides must be silent this long before a connection is closed at a shutdown: an app may send and receive at once.
 */
const GOING_AWAY_SILENCE_MS = 1000;

/** The side that has ended the conversation; the call may continue for a while. */
type State = 'open' | 'client left' | 'app closed';

export class WebSocketCall implements Sink, Conversation, Answer {
  readonly #context: RequestContext;
  readonly #model: Model;
  readonly #ws: WebSocket;
  readonly #call: Call;
  readonly #outbox: Outbox;
  readonly #reads = new FrameReads();
  readonly #heartbeat: ReturnType<typeof startHeartbeat>;
  readonly #silence = new SilenceLimit(() => this.#onSilence());
  #state: State = 'open';
  /** The reason why the client disconnected. */
  #leaveReason = '';
  #goingAway: ServeError | null = null;
  #closing: ReturnType<typeof startClosing> | null = null;
  /** Always 0: everything is in the socket's own queue. */
  readonly queuedBytes = 0;
  readonly isOut = false;

  /** Submits the call, in the `place` that the dispatcher has admitted it to. */
  constructor(context: RequestContext, plan: CallPlan, target: NamedTarget, ws: WebSocket, place: Admission) {
    this.#context = context;
    this.#model = target.model;
    this.#ws = ws;
    const call = describeCall(context, plan, target, null, 0);
    this.#call = new Call(call, [], { acceptedAtMs: performance.now(), deadlineAtMs: null }, this);
    this.#call.conversation = this;
    this.#outbox = new Outbox((bytes) => target.model.dispatcher.countClientBytes(bytes));
    this.#heartbeat = startHeartbeat(ws);
    this.#listen();
    target.model.dispatcher.submit(this.#call, place);
  }

  goAway(why: ServeError): void {
    this.#goingAway ??= why;
    if (this.#silence.isRunning) this.#silence.begin(GOING_AWAY_SILENCE_MS);
  }

  data({ text, last }: DataPart, pieces: Buffer[], taken: () => void): void {
    const bytes = joinPieces(pieces);
    this.#silence.break();
    this.#corkForOneTurn();
    this.#ws.send(bytes, { binary: !text, fin: last }, () => taken());
  }

  onCut(error: ServeError): void {
    this.#giveUp(error, 'the client stopped reading');
  }

  credit(bytes: number): void {
    this.#outbox.grant(bytes);
    this.#sendOn();
  }

  waiting(): void {
    if (this.#context.backend.end.isNear) this.#goingAway ??= shuttingDown();
    const { websocketIdleTimeout } = this.#model.options;
    this.#silence.begin(this.#goingAway === null ? websocketIdleTimeout : GOING_AWAY_SILENCE_MS);
  }

  close(code: number, reason: string): void {
    if (this.#state === 'open') this.#state = 'app closed';
    this.#close(code, reason);
  }

  end(): void {
    this.#close(1000);
    this.#onSettled(null);
  }

  fail(_call: Call, error: ServeError): void {
    this.#close(closeCodeOf(error), closeReason(error));
    this.#onSettled(error);
  }

  /** Fails the call: only a worker that mistakes it for another kind sends a reply. */
  reply(call: Call): void {
    this.fail(call, new ServeError('SERVE_OUTPUT_INVALID'));
  }

  head(): void {
    this.#giveUp(protocolError('a stream reply to a WebSocket call'), 'the call is a WebSocket');
  }

  chunk(_call: Call, _pieces: Buffer[], taken: () => void): void {
    taken();
  }

  #listen(): void {
    const { socket } = this.#context.request;
    const ws = this.#ws;
    const [parse] = socket.listeners('data') as [(this: Socket, bytes: Buffer) => void]; // of `ws`
    const parseIf = (bytes: Buffer | null): void => void (bytes !== null && parse.call(socket, bytes));
    socket.off('data', parse);
    socket.on('data', (read: Buffer) => {
      const bytes = this.#reads.take(read);
      this.#onBytes(read.length);
      parseIf(bytes);
      this.#onRead();
    });
    // `ws` then parses what the socket still holds, which comes after what is collected.
    socket.prependListener('close', () => parseIf(this.#reads.rest()));
    ws.on('message', (data, isBinary) => this.#onMessage(data, !isBinary));
    ws.on('ping', ({ length }) => this.#held(() => this.#outbox.onControlFrame(length)));
    ws.on('pong', ({ length }) => this.#held(() => this.#outbox.onControlFrame(length)));
    ws.on('error', ({ message }) => {
      this.#reads.stop();
      this.#onLeft(`the client broke the protocol: ${message}`);
    });
    ws.on('close', (code) => {
      this.#onLeft(`the client closed the connection (${code})`);
      this.#heartbeat.stop();
      this.#closing?.stop();
      this.#outbox.onGone();
    });
  }

  #onBytes(bytes: number): void {
    this.#heartbeat.onBytes();
    if (this.#closing !== null) this.#closing.onBytes(bytes);
    else this.#held(() => this.#outbox.onBytes(bytes, this.#reads.fragments));
  }

  #onRead(): void {
    this.#watchReader();
    if (this.#outbox.partialBytes > 0) this.#silence.onPart();
    // The client has sent its close frame, for which there is no event; `close` waits for the end of the connection.
    if (this.#ws.readyState === this.#ws.CLOSING) this.#onLeft('the client closed the connection');
  }

  #onMessage(data: RawData, text: boolean): void {
    if (this.#call.settled || this.#state !== 'open') return;
    this.#silence.end();
    this.#outbox.push(data as Buffer, text); // a Buffer, because `binaryType` is the default
    this.#sendOn();
  }

  #sendOn(): void {
    const { holder } = this.#call;
    if (holder !== null)
      this.#held(() => this.#outbox.drain((part, bytes) => holder.sendData(this.#call, part, bytes)));
    if (this.#outbox.isFull) this.#ws.pause();
    else if (this.#ws.isPaused) this.#ws.resume();
    if (this.#outbox.isEmpty && this.#state === 'client left') this.#giveUpLeft();
  }

  /** Changes the bytes held for the worker, and gives the call up if there is no room for them. */
  #held(change: () => void): void {
    if (this.#call.settled) return;
    try {
      change();
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      this.#giveUp(thrown, thrown.message);
    }
  }

  #onLeft(why: string): void {
    if (this.#state !== 'open') return;
    this.#state = 'client left';
    this.#leaveReason = why;
    this.#closing ??= startClosing(this.#ws, this.#context.request.socket);
    // The app still gets the messages that the client sent before it disconnected, if the call has begun.
    if (this.#outbox.isEmpty || this.#call.isQueued) this.#giveUpLeft();
  }

  #giveUpLeft(): void {
    this.#giveUp(new ServeError('SERVE_CANCELLED'), this.#leaveReason);
  }

  #onSilence(): void {
    const limit = formatMs(this.#model.options.websocketIdleTimeout);
    const silence = `No message was sent for ${limit} (--websocket-idle-timeout).`;
    const error = this.#goingAway ?? new ServeError('SERVE_REQUEST_TIMEOUT', silence);
    this.#giveUp(error, error.message);
  }

  #giveUp(error: ServeError, reason: string): void {
    this.#model.dispatcher.giveUp(this.#call, error, reason);
  }

  #close(code: number, reason?: string): void {
    this.#ws.close(code, reason);
    this.#closing ??= startClosing(this.#ws, this.#context.request.socket);
  }

  #onSettled(error: ServeError | null): void {
    this.#silence.end();
    this.#outbox.clear();
    const status = error === null ? 101 : statusOf(error);
    this.#context.backend.observer.settled(this.#context, this.#call, status, error);
  }

  /** Combines everything that the worker sends in one turn into one write. */
  #corkForOneTurn(): void {
    const { socket } = this.#context.request;
    if (socket.writableCorked > 0) return;
    socket.cork();
    process.nextTick(() => {
      socket.uncork();
      this.#watchReader();
    });
  }

  /**
   * Watches a client that does not read. The app's messages are bounded by their credit, but a client may request any
   * number of pongs.
   */
  #watchReader(): void {
    const { socket } = this.#context.request;
    if (socket.writableLength > 0) this.#context.backend.unsent.watch(socket, this);
  }
}

/** Close codes by error (RFC 6455 section 7.4.1, and 1013 of its registry). Any other error is 1011: the server failed. */
const CLOSE_CODES: Partial<Record<ErrorCode, number>> = {
  SERVE_SHUTTING_DOWN: 1001, // going away
  SERVE_NOT_FOUND: 1008, // policy violation
  SERVE_MODEL_NOT_FOUND: 1008,
  SERVE_VERSION_NOT_FOUND: 1008,
  SERVE_REQUEST_TIMEOUT: 1008,
  SERVE_NOT_BEGUN: 1013, // try again later
  SERVE_NOT_READY: 1013,
  SERVE_QUEUE_FULL: 1013,
  SERVE_QUEUE_TIMEOUT: 1013,
};

export function closeCodeOf(error: ServeError): number {
  return isAppsRefusal(error) ? 1008 : (CLOSE_CODES[error.code] ?? 1011);
}

/** Builds the close reason from code, an app's own status and message, as far as they fit; it is cut at a whole character. */
export function closeReason({ code, status, message }: ServeError): string {
  const text = code === 'SERVE_HTTP_ERROR' ? `${code}: ${status} ${message}` : `${code}: ${message}`;
  const cut = new TextEncoder().encodeInto(text, new Uint8Array(MAX_CLOSE_REASON_BYTES)).read;
  return text.slice(0, cut);
}

/** The time for the client to answer the close frame, and for each bit of progress in reading until then. */
const CLOSE_TIMEOUT_MS = 2000;

/** A client may have sent this much before it received the close frame. */
const LATE_BYTES = 64 * 1024;

/**
 * Closes a WebSocket from the server's side. The close code and reason give the cause, as a status and an error body do
 * for other calls; the client then has some time to read what was sent before and to answer with its own close frame.
 *
 * Waits for the client's close frame; call it once ours has been written. `onBytes`: the client has sent more. `stop`: the
 * connection is gone.
 */
export function startClosing(ws: WebSocket, socket: Socket) {
  let lateBytes = 0;
  let unsentBytes = Infinity;
  const timer = setInterval(() => {
    const { bufferedAmount } = ws;
    if (bufferedAmount === 0 || bufferedAmount >= unsentBytes) ws.terminate();
    unsentBytes = bufferedAmount;
  }, CLOSE_TIMEOUT_MS);
  ws.resume(); // or its close frame would not be read
  return {
    onBytes: (bytes: number) => {
      lateBytes += bytes;
      // The client is still sending a message, which would be held in memory until it is complete.
      if (lateBytes > LATE_BYTES) socket.removeAllListeners('data').on('data', () => {});
    },
    stop: () => clearInterval(timer),
  };
}
