/**
 * One worker, as far as its calls are concerned: `WorkerHandle` adds its process. It holds calls in batches, in the order
 * sent: first the active ones, which run or should begin now, as many as the worker has places; behind them those sent ahead.
 *
 * 1. `assign` sends a batch. 2. The ending of a call frees its place in the worker, the last ending that of the batch.
 * Whether a call has begun is looked up in the worker's note when it matters: at a death, when a limit seems to be over, or
 * on request. A call whose client has left keeps its place until the worker has ended it.
 *
 * Beside: `call-messages.ts` sends the calls and handles the worker's messages, `run-timeout.ts` watches the active batches.
 */
import type { Readable, Writable } from 'node:stream';
import { MONOTONIC_OFFSET_MS, type BegunNote } from '../../protocol/wire/begun-note.js';
import { Channel, type ChannelHandlers } from '../../protocol/wire/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import type { DataPart, Message } from '../../protocol/wire/messages.js';
import type { Call, ReadyWorker } from '../dispatch/call.js';
import type { NamedLimit } from '../machine/limit-timer.js';
import { CallAnswers, sendBatch } from './call-messages.js';
import { HeldCall, type HeldBatch, type CallHolder, type StuckCause } from './held-batch.js';
import { RunTimeout } from './run-timeout.js';

export interface CallLimits {
  readonly runTimeout: NamedLimit;
  readonly maxOutputBytes: number;
}

/** Output of a call may be read so long after its answer, which comes by another pipe. */
const JUST_MS = 50;

export abstract class CallWorker implements CallHolder, ReadyWorker, ChannelHandlers {
  readonly index: number;
  readonly channel: Channel;
  readonly answers: CallAnswers;
  readonly timeout: RunTimeout;
  /** Whether a signal has frozen it (SIGSTOP), as of the last look. */
  isFrozen = false;
  /** Number of batches that run at the same time. Set before the first `assign`. */
  places = 1;
  /**
   * Number of calls that it holds, running or sent ahead, including abandoned ones: they keep the worker busy until they end.
   * Only its own methods change it, and the number of those that have ended.
   */
  load = 0;
  finishedCalls = 0;
  /** When its last call ended, on the monotonic clock; 0 before. Its model sets it. */
  lastCallMs = 0;
  /** Most calls of each route that may begin together; empty before the app is loaded. */
  maxBatches: ReadonlyMap<string, number> = new Map();
  readonly #readBegun: () => BegunNote;
  #batches: HeldBatch[] = [];
  #nextId = 1;
  #inBurst = false;
  #callersWait = false;
  #lastId = '';
  #lastEndedAt = 0;

  constructor(
    index: number,
    framesIn: Readable,
    framesOut: Writable,
    readBegun: () => BegunNote,
    limits: CallLimits,
  ) {
    this.index = index;
    this.#readBegun = readBegun;
    this.channel = new Channel(framesIn, framesOut, this);
    this.answers = new CallAnswers(this, limits.maxOutputBytes);
    this.timeout = new RunTimeout(limits.runTimeout, this);
  }

  abstract onMessage(message: Message, pieces: Buffer[]): void;
  /** `error`: its frames are broken; null if it has closed its stream. */
  abstract onEnd(error: ServeError | null): void;
  /** A call has ended in the worker. `runMs` is null if it does not predict the time of later calls. */
  protected abstract onFinished(call: Call, runMs: number | null): void;
  abstract onCallError(call: Call, error: ServeError): void;
  abstract leave(why: string): void;
  abstract kill(cause: StuckCause): void;

  room(message: Message, bytes: number): Buffer | null {
    return this.answers.room(message, bytes);
  }

  onWriteError(): void {} // it is dying; its stream still delivers its last messages

  /** Applies to batches that begin from now on. */
  set limits({ runTimeout, maxOutputBytes }: CallLimits) {
    this.answers.maxOutputBytes = maxOutputBytes;
    this.timeout.limit = runTimeout;
  }

  /** Whether calls wait that no worker of the model can begin: then the clients of a running call may not keep it waiting for ever. */
  set callersWait(areWaiting: boolean) {
    this.#callersWait = areWaiting;
    this.#noteOthers();
  }

  /** Number of batches that these calls are in. */
  get heldBatches(): number {
    return this.#batches.length;
  }

  /** Time since the first of its calls began, or since it should have begun; 0 if there is none. */
  get runningMs(): number {
    const [first] = this.#batches;
    return first === undefined ? 0 : performance.now() - first.beganAtMs;
  }

  /** Whether its first call is a WebSocket. */
  get isEngaged(): boolean {
    return this.#batches[0]?.calls[0]?.call.isConversation === true;
  }

  get active(): readonly HeldBatch[] {
    return this.#batches.slice(0, this.places);
  }

  maxBatch(route: string): number {
    return this.maxBatches.get(route) ?? 1;
  }

  lookUpActive(): readonly HeldBatch[] {
    this.learnBegun();
    return this.active;
  }

  /** Looks up the running batches, in the order in which they began. */
  lookUpRunning(): HeldBatch[] {
    return this.lookUpActive().filter(({ hasBegun }) => hasBegun);
  }

  /** Looks up the request id of the running call, for output that does not name its call; empty if none or several run. */
  lookUpRunningRequestId(): string {
    const [running, another] = this.lookUpRunning();
    return another === undefined ? (running?.calls[0]?.call.message.requestId ?? '') : '';
  }

  /** Looks up the same; if none runs, the call that has just ended: its output may arrive after its answer. */
  lookUpLastRequestId(): string {
    if (this.lookUpRunning().length > 0) return this.lookUpRunningRequestId();
    return Date.now() - this.#lastEndedAt < JUST_MS ? this.#lastId : '';
  }

  /** Looks up when the oldest running call began, on the monotonic clock; null if none runs. */
  lookUpCallBegan(): number | null {
    return this.lookUpRunning()[0]?.beganAtMs ?? null;
  }

  checkActive({ id, batch }: HeldCall): void {
    if (batch === this.#batches[0] || this.#batches.indexOf(batch) < this.places) return;
    throw protocolError(`an answer to call ${id}, before those sent earlier have ended`);
  }

  find(id: number): HeldCall {
    const held = this.#find(id);
    if (held !== null) return held;
    throw protocolError(`call ${id} is not held by this worker`);
  }

  /** The request ids of those of these calls that are still held. */
  requestIds(ids: readonly number[]): string[] {
    return ids.flatMap((id) => this.#find(id)?.call.message.requestId ?? []);
  }

  /** All calls held; looks up which have begun. */
  heldCalls(): Call[] {
    this.learnBegun();
    return this.#batches.flatMap(({ calls: held }) => held.map(({ call }) => call));
  }

  /** Sends the calls of a batch. The worker must be `ready`. */
  assign(calls: readonly Call[]): void {
    const batch = this.timeout.newBatch();
    for (const call of calls) {
      const id = this.#nextId;
      this.#nextId = id === 0xffff_ffff ? 1 : id + 1;
      call.message.id = id;
      batch.calls.push(new HeldCall(id, call, batch));
    }
    this.load += calls.length;
    if (this.#batches.push(batch) <= this.places) this.timeout.start(batch);
    this.#noteOthers();
    sendBatch(this.channel, (calls[0] as Call).message.id, calls);
    this.flushSoon();
  }

  /** The call is settled; cancels its call in the worker. */
  abandon(call: Call, reason: string): void {
    const held = this.#findByCall(call);
    if (held === null) return;
    held.onClientLeft();
    if (!this.#cancel(held, reason)) this.release(held, null);
  }

  /** Signals the app that the call is not wanted any more; its answer still counts. */
  signal(call: Call, reason: string): void {
    const held = this.#findByCall(call);
    if (held === null || this.#cancel(held, reason)) return;
    call.fail(new ServeError('SERVE_CANCELLED'));
    this.release(held, null);
  }

  /** Returns false if the call was never sent: the worker does not know it. */
  #cancel({ id }: HeldCall, reason: string): boolean {
    if (!this.channel.dropBody(id)) return false;
    this.channel.send({ type: 'cancel', id, reason });
    this.flushSoon();
    return true;
  }

  sendData(call: Call, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    const held = this.#findByCall(call);
    if (held === null) return;
    held.onClientMessage();
    this.channel.send({ type: 'data', id: held.id, ...part }, bytes);
    this.flushSoon();
  }

  /** Ends each conversation as soon as its app waits for the client. */
  endConversations(why: ServeError): void {
    for (const { conversation } of this.heldCalls()) conversation?.goAway(why);
  }

  release(held: HeldCall, runMs: number | null): void {
    const { batch, call } = held;
    batch.remove(held);
    this.load -= 1;
    if (batch.calls.length === 0) {
      const at = this.#batches.indexOf(batch);
      if (at === 0) this.#batches.shift();
      else this.#batches.splice(at, 1);
      const next = this.#batches[this.places - 1]; // sent ahead until now
      if (at < this.places && next !== undefined) this.timeout.start(next);
    }
    if (this.places > 1) this.timeout.onEnded();
    this.#noteOthers();
    if (held.knownBegun) this.finishedCalls += 1;
    this.#noteEnded(call);
    this.onFinished(call, runMs);
  }

  /** The worker begins no more calls: removes and returns the calls of batches that have not begun, in order. */
  takeUnbegun(): Call[] {
    this.learnBegun();
    const unbegun = this.#batches.filter(({ hasBegun }) => !hasBegun).flatMap(({ calls }) => calls);
    this.#batches = this.#batches.filter(({ hasBegun }) => hasBegun);
    this.load -= unbegun.length;
    for (const { id } of unbegun) this.channel.dropBody(id);
    return unbegun.map(({ call }) => call);
  }

  /** The worker is dead: returns the calls that it held, in order, and stops all timers. */
  lose(): Call[] {
    const calls = this.heldCalls();
    if (calls[0]?.hasBegun === true) this.#noteEnded(calls[0]);
    this.#batches = [];
    this.load = 0;
    this.timeout.close();
    return calls;
  }

  #noteEnded({ message }: Call): void {
    this.#lastId = message.requestId;
    this.#lastEndedAt = Date.now();
  }

  /** Marks the calls that have begun by the worker's note: the call that it names, which may have ended, and those sent before it. */
  learnBegun(): void {
    if (this.load === 0) return;
    const { id, atMs, times } = this.#readBegun();
    if (id === 0 || !isBefore(id, this.#nextId)) return;
    for (const batch of this.#batches) {
      const last = batch.calls.findLast((held) => held.id === id || isBefore(held.id, id));
      if (last === undefined) return;
      batch.begin(last, (times?.get(last.id) ?? atMs) - MONOTONIC_OFFSET_MS);
    }
  }

  /**
   * A worker with a free place gets its message now, before clients get their answers; a busy one gets the messages of one
   * turn of the event loop in one write.
   */
  flushSoon(): void {
    if (this.#batches.length === 1 || this.places > 1) this.channel.flush();
    else if (!this.#inBurst) {
      this.#inBurst = true;
      setImmediate(this.#endBurst);
    }
  }

  readonly #endBurst = (): void => {
    this.#inBurst = false;
    this.channel.flush();
  };

  #findByCall(call: Call): HeldCall | null {
    const held = this.#find(call.message.id);
    return held?.call === call ? held : null; // the id may be that of the worker that held it before
  }

  #find(id: number): HeldCall | null {
    for (const { calls } of this.#batches) {
      for (const held of calls) if (held.id === id) return held;
    }
    return null;
  }

  /** Calls that were sent ahead wait for the active batches, too. */
  #noteOthers(): void {
    const { length } = this.#batches;
    const othersWait = this.#callersWait || length > this.places;
    for (let i = 0; i < length && i < this.places; i += 1)
      (this.#batches[i] as HeldBatch).othersWait = othersWait;
  }
}

/** Whether the first of these ids was given before the other one; they count up, and begin again after 2^32 - 1. */
function isBefore(id: number, later: number): boolean {
  return id !== later && (later - id) >>> 0 < 2 ** 31;
}
