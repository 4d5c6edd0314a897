/**
 * The calls that one worker holds, in batches, in the order sent: first the active ones, which run or should begin now, as
 * many as the worker has places; behind them those sent ahead.
 *
 * 1. `assign` sends a batch. 2. The ending of a call frees its place in the worker, the last ending that of the batch.
 * Whether a call has begun is looked up in the worker's note when it matters: at a death, when a limit seems to be over, or
 * on request. A call whose client has left keeps its place until the worker has ended it.
 *
 * Beside: `call-answers.ts` handles the worker's messages, `run-timeout.ts` watches the active batches, `call-traffic.ts`
 * handles streaming calls and WebSockets.
 */
import { MONOTONIC_OFFSET_MS, type BegunNote } from '../../protocol/wire/begun-note.js';
import type { Channel } from '../../protocol/wire/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import type { DataPart, Message } from '../../protocol/wire/messages.js';
import type { Call } from '../dispatch/call.js';
import type { NamedLimit } from '../machine/limit-timer.js';
import { CallAnswers, type AnsweredCalls } from './call-answers.js';
import { CallTraffic } from './call-traffic.js';
import { HeldBatch, type HeldCall } from './held-batch.js';
import { RunTimeout, type RunTimeoutListener, type TimedBatches } from './run-timeout.js';
import { sendBatch } from './send-batch.js';

export interface CallLimits {
  readonly runTimeout: NamedLimit;
  readonly maxOutputBytes: number;
}

export interface HeldCallsListener extends RunTimeoutListener {
  onFinished(call: Call, runMs: number | null): void;
}

/** Output of a call may be read so long after its answer, which comes by another pipe. */
const JUST_MS = 50;

export class HeldCalls implements TimedBatches, AnsweredCalls {
  readonly #channel: Channel;
  readonly #listener: HeldCallsListener;
  readonly #readBegun: () => BegunNote;
  readonly #answers: CallAnswers;
  readonly #timeout: RunTimeout;
  readonly #traffic: CallTraffic;
  #batches: HeldBatch[] = [];
  #count = 0;
  #nextId = 1;
  #inBurst = false;
  #finished = 0;
  #callersWait = false;
  #places = 1;
  #lastId = '';
  #lastEndedAt = 0;

  constructor(channel: Channel, readBegun: () => BegunNote, limits: CallLimits, listener: HeldCallsListener) {
    this.#channel = channel;
    this.#readBegun = readBegun;
    this.#listener = listener;
    this.#timeout = new RunTimeout(limits.runTimeout, channel, this, listener);
    this.#traffic = new CallTraffic(channel, () => this.#flushSoon());
    const { maxOutputBytes } = limits;
    this.#answers = new CallAnswers(channel, this, this.#traffic, maxOutputBytes, (call, error) =>
      listener.onCallError(call, error),
    );
  }

  /** Applies to batches that begin from now on. */
  set limits({ runTimeout, maxOutputBytes }: CallLimits) {
    this.#answers.maxOutputBytes = maxOutputBytes;
    this.#timeout.limit = runTimeout;
  }

  /** Whether calls wait that no worker of the model can begin: then the clients of a running call may not keep it waiting for ever. */
  set callersWait(areWaiting: boolean) {
    this.#callersWait = areWaiting;
    this.#noteOthers();
  }

  get count(): number {
    return this.#count;
  }

  /** Number of batches that these calls are in. */
  get batchCount(): number {
    return this.#batches.length;
  }

  /** Request id of the call that has ended last, if that was just now; else empty. */
  get justEnded(): string {
    return Date.now() - this.#lastEndedAt < JUST_MS ? this.#lastId : '';
  }

  get finished(): number {
    return this.#finished;
  }

  /** Number of batches that run at the same time. */
  get places(): number {
    return this.#places;
  }

  /** Call it before the first `assign`. */
  set places(count: number) {
    this.#places = count;
  }

  /** Looks up the running batches, in the order in which they began. */
  lookUpRunning(): HeldBatch[] {
    return this.lookUpActive().filter(({ hasBegun }) => hasBegun);
  }

  /** The batch that began first, or the first one that should begin now. */
  get first(): HeldBatch | null {
    return this.#batches[0] ?? null;
  }

  get active(): readonly HeldBatch[] {
    return this.#batches.slice(0, this.#places);
  }

  lookUpActive(): readonly HeldBatch[] {
    this.learnBegun();
    return this.active;
  }

  holds(batch: HeldBatch): boolean {
    return this.#batches.includes(batch);
  }

  isActive({ batch }: HeldCall): boolean {
    return batch === this.#batches[0] || this.#batches.indexOf(batch) < this.#places;
  }

  find(id: number): HeldCall {
    const held = this.#findById(id);
    if (held !== null) return held;
    throw protocolError(`call ${id} is not held by this worker`);
  }

  /** The request ids of those of these calls that are still held. */
  requestIds(ids: readonly number[]): string[] {
    return ids.flatMap((id) => this.#findById(id)?.call.message.requestId ?? []);
  }

  /** All calls held; looks up which have begun. */
  calls(): Call[] {
    this.learnBegun();
    return this.#batches.flatMap(({ calls: held }) => held.map(({ call }) => call));
  }

  /** Sends the calls of a batch. */
  assign(calls: readonly Call[]): void {
    const batch = new HeldBatch(this.#timeout.beginGraceMs, this.#hasten);
    for (const call of calls) {
      const id = this.#takeId();
      call.message.id = id;
      batch.calls.push({ id, call, batch, knownBegun: false, clientWait: null });
    }
    this.#count += calls.length;
    if (this.#batches.push(batch) <= this.#places) this.#awaitBegin(batch);
    this.#noteOthers();
    sendBatch(this.#channel, (calls[0] as Call).message.id, calls);
    this.#flushSoon();
  }

  /** The call is settled; cancels its call in the worker. */
  abandon(call: Call, reason: string): void {
    const held = this.#findByCall(call);
    if (held === null) return;
    held.clientWait = null;
    held.batch.setClock(); // it waits for no client any more: its clock runs
    if (this.#channel.dropBody(held.id)) {
      this.#channel.send({ type: 'cancel', id: held.id, reason });
      this.#flushSoon();
    } else {
      this.release(held, null); // it was never sent: the worker does not know it
    }
  }

  /** Signals the app that the call is not wanted any more; its answer still counts. */
  signal(call: Call, reason: string): void {
    const held = this.#findByCall(call);
    if (held === null) return;
    if (this.#channel.dropBody(held.id)) {
      this.#channel.send({ type: 'cancel', id: held.id, reason });
      this.#flushSoon();
    } else {
      call.fail(new ServeError('SERVE_CANCELLED')); // it was never sent
      this.release(held, null);
    }
  }

  sendData(call: Call, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    const held = this.#findByCall(call);
    if (held !== null) this.#traffic.send(held, part, bytes);
  }

  /** Returns the buffer for the body of a message that is still arriving; null for the channel's own. */
  room(message: Message, bytes: number): Buffer | null {
    return this.#answers.room(message, bytes);
  }

  /** Takes a message about a call. Returns false if it is about something else. @throws SERVE_PROTOCOL */
  take(message: Message, pieces: Buffer[]): boolean {
    return this.#answers.take(message, pieces);
  }

  release(held: HeldCall, runMs: number | null): void {
    const { batch } = held;
    batch.remove(held);
    this.#count -= 1;
    if (batch.calls.length === 0) this.#removeBatch(batch);
    if (this.#places > 1) this.#timeout.onEnded();
    this.#noteOthers();
    if (held.knownBegun) this.#finished += 1;
    this.#noteEnded(held.call);
    this.#listener.onFinished(held.call, runMs);
  }

  /** The worker begins no more calls: removes and returns the calls whose calls have not begun, in order. */
  takeUnbegun(): Call[] {
    this.learnBegun();
    const unbegun = this.#batches.flatMap(({ calls: held }) => held.filter(({ knownBegun }) => !knownBegun));
    for (const { id, batch } of unbegun) {
      this.#channel.dropBody(id);
      this.#batches.splice(this.#batches.indexOf(batch), 1);
      this.#count -= 1;
    }
    return unbegun.map(({ call }) => call);
  }

  /** The worker is dead: returns the calls that it held, in order. */
  lose(): Call[] {
    const calls = this.calls();
    if (calls[0]?.hasBegun === true) this.#noteEnded(calls[0]);
    this.#batches = [];
    this.#count = 0;
    return calls;
  }

  #noteEnded({ message }: Call): void {
    this.#lastId = message.requestId;
    this.#lastEndedAt = Date.now();
  }

  /** The worker's event loop turns. */
  onPong(ref: number): void {
    this.#timeout.onPong(ref);
  }

  /** Stops all timers. */
  close(): void {
    this.#timeout.close();
  }

  /** Marks the calls that have begun by the worker's note: the call that it names, which may have ended, and those sent before it. */
  learnBegun(): void {
    if (this.#count === 0) return;
    const { id, atMs, times } = this.#readBegun();
    if (id === 0 || !isBefore(id, this.#nextId)) return;
    for (const batch of this.#batches) {
      const last = batch.calls.findLast((held) => held.id === id || isBefore(held.id, id));
      if (last === undefined) return;
      batch.begin(last, (times?.get(last.id) ?? atMs) - MONOTONIC_OFFSET_MS);
    }
  }

  #takeId(): number {
    const id = this.#nextId;
    this.#nextId = id === 0xffff_ffff ? 1 : id + 1;
    return id;
  }

  #findById(id: number): HeldCall | null {
    for (const { calls } of this.#batches) {
      for (const held of calls) if (held.id === id) return held;
    }
    return null;
  }

  #findByCall(call: Call): HeldCall | null {
    for (const { calls } of this.#batches) {
      for (const held of calls) if (held.call === call) return held;
    }
    return null;
  }

  /** Calls that were sent ahead wait for the active batches, too. */
  #noteOthers(): void {
    const { length } = this.#batches;
    const othersWait = this.#callersWait || length > this.#places;
    for (let i = 0; i < length && i < this.#places; i += 1)
      (this.#batches[i] as HeldBatch).othersWait = othersWait;
  }

  readonly #hasten = (batch: HeldBatch): void => this.#timeout.hasten(batch);

  #removeBatch(batch: HeldBatch): void {
    if (batch === this.first) {
      this.#batches.shift();
      this.#awaitNext();
      return;
    }
    const at = this.#batches.indexOf(batch);
    this.#batches.splice(at, 1);
    if (at < this.#places) this.#awaitNext();
  }

  /** An active batch has ended: the first of those sent ahead takes its place. */
  #awaitNext(): void {
    const next = this.#batches[this.#places - 1];
    if (next !== undefined) this.#awaitBegin(next);
  }

  /** Starts the clock of a batch that is active now: it must begin in time, or its worker hangs. */
  #awaitBegin(batch: HeldBatch): void {
    batch.awaitBegin();
    this.#timeout.start(); // also for one that has begun: the clock may have run out on the one before
  }

  /**
   * A worker with a free place gets its message now, before clients get their answers; a busy one gets the messages of one
   * turn of the event loop in one write.
   */
  #flushSoon(): void {
    if (this.#batches.length === 1 || this.#places > 1) this.#channel.flush();
    else if (!this.#inBurst) {
      this.#inBurst = true;
      setImmediate(this.#endBurst);
    }
  }

  readonly #endBurst = (): void => {
    this.#inBurst = false;
    this.#channel.flush();
  };
}

/** Whether the first of these ids was given before the other one; they count up, and begin again after 2^32 - 1. */
function isBefore(id: number, later: number): boolean {
  return id !== later && (later - id) >>> 0 < 2 ** 31;
}
