/**
 * A call: one call with its body, its times and the sink of its answer. It settles exactly once, whatever happens to its
 * client, its worker or the server.
 */
import { randomBytes } from 'node:crypto';
import type { ServeError } from '../../protocol/errors.js';
import type { Call as WireCall, DataPart, ReplyHead } from '../../protocol/wire/messages.js';
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import { leaveToCollector, type Lease } from '../memory/slabs.js';
import { loggedPath } from '../observe/log-text.js';
import type { BatchWorker } from './batcher.js';
import { Waiting } from './lines.js';
import type { BatchRun } from './service-time.js';

/** A call as a dialect describes it. */
export interface CallMessage extends Omit<WireCall, 'id'> {
  /** Id on the wire, written when a worker gets the call: a copy of the call would cost 2 us. */
  id: number;
  /** Name and version of its model; they are not sent, because a worker runs one model. */
  readonly model: string;
  readonly version: string;
  /** Address of the client's end of the connection, for the log; it is not sent. */
  readonly client: string;
  /** Computes the HTTP status of an answer with this error, for the log; it is not sent. */
  readonly statusOf: (error: ServeError) => number;
}

/** Fields of every log line about a call. */
export type CallFacts = Pick<CallMessage, 'requestId' | 'route' | 'method' | 'path' | 'client'>;

/** Copies the fields, so that the call itself need not live as long as they do; a long path is cut. */
export function callFacts({ requestId, route, method, path, client }: CallFacts): CallFacts {
  return { requestId, route, method, path: loggedPath(path), client };
}

/** Receives a call's answer. Exactly one of `reply`, `end` (after `head`) and `fail` is called, once. */
export interface Sink {
  /** A whole answer; the sink owns the pieces. */
  reply(call: Call, head: ReplyHead, pieces: Buffer[], bodyBytes: number, release: () => void): void;
  head(call: Call, head: ReplyHead): void;
  /** Part of a stream. `taken` is called once the client's connection has room for more. */
  chunk(call: Call, pieces: Buffer[], taken: () => void): void;
  end(call: Call): void;
  /** May follow `head`: the client must then notice that the stream was cut. */
  fail(call: Call, error: ServeError): void;
  /** The app reports how far it is; only the sink of a job that outlives its client is interested. */
  progress?(call: Call, fraction: number, text: string): void;
}

/** Receives the worker's messages on a WebSocket, beside its sink. */
export interface Conversation {
  /** Part of a message for the client. `taken` is called once the connection has room for more. */
  data(part: DataPart, pieces: Buffer[], taken: () => void): void;
  /** The worker accepts so many more bytes, with DATA_OVERHEAD_BYTES per part. */
  credit(bytes: number): void;
  /** The app has received everything and waits for the client's next message. */
  waiting(): void;
  /** Closes the connection as soon as the app waits for the client, with this reason. */
  goAway(why: ServeError): void;
  /** The app closes the connection; the call ends when its function returns. */
  close(code: number, reason: string): void;
}

/** The sink of a call that is detached before it is submitted. */
export const NOWHERE: Sink = { reply() {}, head() {}, chunk() {}, end() {}, fail() {} };

/** A worker, as its calls and the dispatcher see it. */
export interface ReadyWorker extends BatchWorker {
  /** The number of its slot. */
  readonly index: number;
  /** Whether calls wait in line that no worker can begin now. */
  callersWait: boolean;
  /** Calls that it holds, running or sent ahead, in the order sent. */
  heldCalls(): Call[];
  /** Gives it a batch: one or more calls of one route, which begin together. */
  assign(calls: readonly Call[]): void;
  /** Looks up which of its calls have begun, and marks them. `Call.checkBegun` calls it. */
  learnBegun(): void;
  /** The client of this call has gone or has an answer. */
  abandon(call: Call, reason: string): void;
  /** Signals the app that this call is not wanted any more; its answer still counts. */
  signal(call: Call, reason: string): void;
  /** Sends a part of a message from the client, within the credit given; the bytes belong to the worker's channel from now on. */
  sendData(call: Call, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void;
}

const UNLENT = { release: leaveToCollector };

export class Call extends Waiting {
  readonly message: CallMessage;
  readonly route: string;
  readonly bodyBytes: number;
  readonly pieces: readonly Buffer[];
  readonly acceptedAtMs: number;
  /** When the client stops waiting, on the monotonic clock; null without a deadline, or once detached. */
  deadlineAtMs: number | null;
  /** Called with a whole answer before the sink, which owns the pieces. */
  onReply: ((head: ReplyHead, pieces: readonly Buffer[]) => void) | null = null;
  /** The client's side of a WebSocket; null for other calls. */
  conversation: Conversation | null = null;
  /** Run time as the worker measured it; 0 if the call never ran. */
  runMs = 0;
  /** The batch in which a worker got it; null for a call that runs alone. */
  batch: BatchRun | null = null;
  /** Reply size in bytes; 0 until the reply is complete, for a stream the bytes so far. */
  replyBytes = 0;
  /** Takes a job that was pulled from a store back to it; null for other jobs. `isLoss`: its worker died. */
  onGivenBack: ((isLoss: boolean) => void) | null = null;
  /** Number of the slot whose worker got it last; null before. */
  worker: number | null = null;
  /** The memory of the body, which is released once the worker has read all of it. */
  readonly lease: Pick<Lease, 'release'>;
  #sink: Sink;
  /** `sent` may be out of date, because a worker begins without a message: `checkBegun` looks it up. */
  #state: 'queued' | 'sent' | 'begun' | 'settled' = 'queued';
  /** 0 until it is known that the call has begun. */
  #beganAtMs = 0;
  #holder: ReadyWorker | null = null;
  #onLetGo: (() => void) | null = null;
  #deadlineTimer: LimitTimer | null = null;

  constructor(
    call: CallMessage,
    pieces: readonly Buffer[],
    times: { acceptedAtMs: number; deadlineAtMs: number | null },
    sink: Sink,
    lease: Pick<Lease, 'release'> = UNLENT,
  ) {
    super();
    this.message = call;
    this.route = call.route;
    this.bodyBytes = call.bodyBytes;
    this.pieces = pieces;
    this.acceptedAtMs = times.acceptedAtMs;
    this.deadlineAtMs = times.deadlineAtMs;
    this.#sink = sink;
    this.lease = lease;
  }

  get isConversation(): boolean {
    return this.conversation !== null;
  }

  get settled(): boolean {
    return this.#state === 'settled';
  }

  /** Whether it waits for a worker. */
  get isQueued(): boolean {
    return this.#state === 'queued';
  }

  /** Whether it was pulled from a store. */
  get isPulled(): boolean {
    return this.onGivenBack !== null;
  }

  /** Looks up in its worker's note whether its call runs; false once it is settled. */
  checkBegun(): boolean {
    if (this.#state === 'sent') this.#holder?.learnBegun();
    return this.#state === 'begun';
  }

  /** Whether its call is known to have begun; stays true once it is settled. */
  get hasBegun(): boolean {
    return this.#beganAtMs !== 0;
  }

  /** The worker that holds the call, from its sending until it has ended there or was given up. */
  get holder(): ReadyWorker | null {
    return this.#holder;
  }

  /** Time spent waiting so far, or until the call began. */
  queueMs(nowMs: number): number {
    this.checkBegun();
    return (this.#beganAtMs === 0 ? nowMs : this.#beganAtMs) - this.acceptedAtMs;
  }

  /** Time since the call began; the caller knows that it has. */
  sinceBeginMs(nowMs: number): number {
    return nowMs - this.#beganAtMs;
  }

  /** Notes that a worker gets it. */
  sendTo(holder: ReadyWorker): void {
    this.#state = 'sent';
    this.#holder = holder;
    this.worker = holder.index;
  }

  /** Notes that the call has begun. */
  begin(nowMs: number): void {
    if (this.settled) return;
    this.#state = 'begun';
    this.#beganAtMs = nowMs;
  }

  /** Notes that no worker holds it any more. Returns the one that did. */
  leaveHolder(): ReadyWorker | null {
    const holder = this.#holder;
    this.#holder = null;
    this.#onLetGo?.();
    this.#onLetGo = null;
    return holder;
  }

  /** Calls back once no worker holds it any more, at once if none does. */
  onceLetGo(callback: () => void): void {
    if (this.#holder === null) callback();
    else this.#onLetGo = callback;
  }

  /** Its worker died and had not begun it: it waits again. */
  comeBack(): void {
    this.#state = 'queued';
  }

  /** Gives a job that was pulled, and that no worker has begun or can begin any more, back to its store. It is settled here. */
  giveBack(isLoss: boolean): void {
    if (this.#settle(0)) this.onGivenBack?.(isLoss);
  }

  /** Calls `onPassed` at the deadline, unless it has settled by then or was detached. */
  startDeadline(deadlineAtMs: number, onPassed: () => void): void {
    this.#deadlineTimer = startLimit(Math.max(0, deadlineAtMs - performance.now()), onPassed);
  }

  /** Detaches the call from its client, which has an answer: its deadline ends, and its own answer goes to `sink`. */
  detach(sink: Sink): void {
    this.#sink = sink;
    this.deadlineAtMs = null;
    this.#deadlineTimer?.stop();
  }

  /** Settles with a whole answer. The sink calls `release` to free the memory of the pieces. */
  reply(
    head: ReplyHead,
    pieces: Buffer[],
    bodyBytes: number,
    runMs: number,
    release: () => void = leaveToCollector,
  ): void {
    if (!this.#settle(runMs)) return;
    this.onReply?.(head, pieces);
    this.#sink.reply(this, head, pieces, bodyBytes, release);
  }

  head(head: ReplyHead): void {
    if (!this.settled) this.#sink.head(this, head);
  }

  chunk(pieces: Buffer[], taken: () => void): void {
    if (this.settled) return;
    for (const piece of pieces) this.replyBytes += piece.length;
    this.#sink.chunk(this, pieces, taken);
  }

  /** Also while the handler of a call that was given up still runs. */
  progress(fraction: number, text: string): void {
    this.#sink.progress?.(this, fraction, text);
  }

  end(runMs: number): void {
    if (this.#settle(runMs)) this.#sink.end(this);
  }

  fail(error: ServeError, runMs = 0): void {
    this.checkBegun(); // the answer contains its time in the queue
    if (this.#settle(runMs)) this.#sink.fail(this, error);
  }

  #settle(runMs: number): boolean {
    if (this.settled) return false;
    this.#state = 'settled';
    this.#deadlineTimer?.stop();
    this.runMs = runMs;
    return true;
  }
}

/** Random bytes are fetched for many ids at once: one call per id costs 1 us more. */
const ID_BYTES = 16;
const BATCH_IDS = 256;
let pool = '';
let used = 0;

/** Returns a new, unique id of a call or a job. */
export function newRequestId(): string {
  if (used === pool.length) {
    pool = randomBytes(ID_BYTES * BATCH_IDS).toString('hex');
    used = 0;
  }
  const id = pool.slice(used, used + 2 * ID_BYTES);
  used += 2 * ID_BYTES;
  return id;
}
