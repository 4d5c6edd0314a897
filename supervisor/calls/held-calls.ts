/**
 * The calls one worker holds, in the order sent: the running one first, those sent ahead behind it.
 *
 * 1. `assign` sends a call. 2. Its ending frees its place in the worker, then answers the owner. Whether a call has begun is looked
 * up in the worker's note, when it matters: at a death, when a limit seems to be over, when somebody asks.
 * A call whose owner has gone keeps its place until the worker has ended it.
 *
 * Beside: `run-timeout.ts` watches the first call, `call-traffic.ts` is for calls that stream or talk.
 */
import { MONOTONIC_OFFSET_MS, type BegunNote } from '../../protocol/begun-note.js';
import { BodyAssembler, totalBytes } from '../../protocol/body-assembler.js';
import type { Channel } from '../../protocol/channel.js';
import { ServeError, asCallErrorCode, protocolError } from '../../protocol/errors.js';
import type { DataPart, Message, ReplyHead } from '../../protocol/messages.js';
import type { Job } from '../dispatch/job.js';
import { leaveToCollector, slabs } from '../memory/slabs.js';
import { CallTraffic } from './call-traffic.js';
import { begin, type HeldCall } from './held-call.js';
import { resume } from './run-clock.js';
import { RunTimeout, type RunTimeoutListener, type TimedCalls } from './run-timeout.js';

export interface CallLimits {
  readonly runTimeoutMs: number;
  readonly maxOutputBytes: number;
}

export interface HeldCallsListener extends RunTimeoutListener {
  onFinished(job: Job, runMs: number | null): void;
}

/** An answer whose body is still arriving. */
interface PartialResult {
  readonly call: HeldCall;
  readonly head: ReplyHead;
  readonly runMs: number;
  /** Gives the memory of its body back. */
  release: () => void;
}

export class HeldCalls implements TimedCalls {
  readonly #channel: Channel;
  readonly #listener: HeldCallsListener;
  readonly #readBegun: () => BegunNote;
  readonly #results = new BodyAssembler<PartialResult>((bytes, result) => {
    const { buffer, release } = slabs.take(bytes);
    result.release = release;
    return buffer;
  });
  readonly #timeout: RunTimeout;
  readonly #traffic: CallTraffic;
  #limits: CallLimits;
  #held: HeldCall[] = [];
  #nextId = 1;
  #inBurst = false;
  #finished = 0;

  constructor(channel: Channel, readBegun: () => BegunNote, limits: CallLimits, listener: HeldCallsListener) {
    this.#channel = channel;
    this.#readBegun = readBegun;
    this.#listener = listener;
    this.#limits = limits;
    this.#timeout = new RunTimeout(limits.runTimeoutMs, channel, this, listener);
    this.#traffic = new CallTraffic(channel, () => this.#flushSoon());
  }

  /** Applies to calls that begin from now on. */
  set limits(limits: CallLimits) {
    this.#limits = limits;
    this.#timeout.limitMs = limits.runTimeoutMs;
  }

  get count(): number {
    return this.#held.length;
  }

  /** Batches that these calls are in. */
  get batchCount(): number {
    return this.#held.length;
  }

  /** Calls that began and ended here. */
  get finished(): number {
    return this.#finished;
  }

  /** Looks up whether the first call has begun. */
  get running(): HeldCall | null {
    const first = this.lookUpFirst();
    return first?.knownBegun === true ? first : null;
  }

  /** The running call, or the one that should begin now. */
  get first(): HeldCall | null {
    return this.#held[0] ?? null;
  }

  lookUpFirst(): HeldCall | null {
    this.learnBegun();
    return this.first;
  }

  holds(call: HeldCall): boolean {
    return this.#held.includes(call);
  }

  /** All calls held; whether each has begun is up to date. */
  jobs(): Job[] {
    this.learnBegun();
    return this.#held.map((call) => call.job);
  }

  /** Sends the calls of a batch. */
  assign(jobs: readonly Job[]): void {
    for (const job of jobs) this.#send(job);
  }

  /** The job is settled; tells the worker to stop working for it. */
  abandon(job: Job, reason: string): void {
    const call = this.#held.find((candidate) => candidate.job === job);
    if (call === undefined) return;
    resume(call); // from now on it waits for no reader: its clock runs
    if (this.#channel.dropBody(call.id)) {
      this.#channel.send({ type: 'cancel', id: call.id, reason });
      this.#flushSoon();
    } else {
      this.#release(call, null); // it never left: the worker knows nothing of it
    }
  }

  sendData(job: Job, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    const call = this.#held.find((candidate) => candidate.job === job);
    if (call !== undefined) this.#traffic.say(call, part, bytes);
  }

  /** Takes a message about a call. Returns false if it is about something else. @throws SERVE_PROTOCOL */
  take(message: Message, pieces: Buffer[]): boolean {
    switch (message.type) {
      case 'result':
        this.#onResult(message, pieces);
        return true;
      case 'body': {
        const whole = this.#results.add(message.id, pieces);
        if (whole !== null) this.#onWholeResult(whole.owner, whole.pieces);
        return true;
      }
      case 'head':
        this.#findBegun(message.id).job.head(message);
        return true;
      case 'chunk':
        this.#traffic.onChunk(this.#findBegun(message.id), pieces);
        return true;
      case 'data':
      case 'credit':
      case 'waiting':
      case 'close':
        this.#traffic.onConversation(this.#findBegun(message.id), message, pieces);
        return true;
      case 'end':
        this.#onEnd(this.#findBegun(message.id), message.runMs);
        return true;
      case 'error':
        this.#onCallError(message);
        return true;
      default:
        return false;
    }
  }

  /** The worker is dead: hands over what it held, in order. */
  lose(): Job[] {
    const jobs = this.jobs();
    this.#held = [];
    return jobs;
  }

  /** Stops all timers. */
  close(): void {
    this.#timeout.close();
  }

  /** Marks what the worker's note says has begun: the call it names, and those sent before it. */
  learnBegun(): void {
    if (this.#held.length === 0) return;
    const { id, atMs } = this.#readBegun();
    const last = this.#held.findIndex((call) => call.id === id);
    for (const call of this.#held.slice(0, last + 1)) {
      if (!call.knownBegun) begin(call, atMs - MONOTONIC_OFFSET_MS);
    }
  }

  #send(job: Job): void {
    const id = this.#nextId;
    this.#nextId = id === 0xffff_ffff ? 1 : id + 1;
    const { call, pieces, bodyBytes } = job;
    call.id = id;
    const isFirst = this.#held.length === 0;
    this.#held.push({
      id,
      job,
      knownBegun: false,
      beganAtMs: isFirst ? performance.now() : 0,
      graceMs: this.#timeout.beginGraceMs,
      pausedMs: 0,
      pausedSinceMs: null,
      turns: null,
    });
    if (isFirst) this.#timeout.start();
    this.#channel.sendBody(
      { type: 'call', calls: [call], inlineBytes: [bodyBytes], batch: id, last: true },
      id,
      pieces,
      bodyBytes,
    );
    this.#flushSoon();
  }

  #onResult(message: Message & { type: 'result' }, pieces: Buffer[]): void {
    const call = this.#findAnswered(message.id, message.runMs);
    if (this.#channel.isSending(message.id)) {
      throw protocolError(`an answer to call ${message.id}, whose body was not read to its end`);
    }
    if (message.bodyBytes > this.#limits.maxOutputBytes) {
      throw protocolError(
        `a result of ${message.bodyBytes} bytes; ${this.#limits.maxOutputBytes} are allowed`,
      );
    }
    const owner: PartialResult = { call, head: message, runMs: message.runMs, release: leaveToCollector };
    const whole = this.#results.start(message.id, owner, message.bodyBytes, pieces);
    if (whole !== null) this.#onWholeResult(owner, whole);
  }

  #onWholeResult({ call, head, runMs, release }: PartialResult, pieces: Buffer[]): void {
    const bodyBytes = totalBytes(pieces);
    call.job.replyBytes = bodyBytes;
    // Feed the worker first, then answer the client.
    this.#release(call, runMs);
    // An answer proves that the worker has read the whole body: nothing of it waits in the pipe.
    call.job.releaseBody();
    call.job.reply(head, pieces, bodyBytes, runMs, release);
  }

  #onCallError(message: Message & { type: 'error' }): void {
    const call = this.#find(message.id);
    if (!call.knownBegun && message.runMs > 0) begin(call, performance.now() - message.runMs);
    const { detail, status, kind } = message;
    const error = new ServeError(asCallErrorCode(message.code), message.message, { detail, status, kind });
    if (!call.job.settled) this.#listener.onCallError(call.job, error);
    call.job.fail(error, message.runMs);
    this.#release(call, null);
  }

  /** The call has ended in the worker: its place is free. `runMs` null: it tells nothing about the next ones. */
  #release(call: HeldCall, runMs: number | null): void {
    const index = this.#held.indexOf(call);
    if (index >= 0) this.#held.splice(index, 1);
    if (index === 0) this.#awaitBegin();
    if (call.knownBegun) this.#finished += 1;
    this.#listener.onFinished(call.job, runMs);
  }

  /** The next call's turn has come: it begins in time, or its worker is frozen. */
  #awaitBegin(): void {
    const [first] = this.#held;
    if (first === undefined) return;
    if (!first.knownBegun) first.beganAtMs = performance.now();
    this.#timeout.start(); // also for one that has begun: the clock may have run out on the one before
  }

  #onEnd(call: HeldCall, runMs: number): void {
    call.job.end(runMs);
    // How long a stream lasts is up to its reader as well; it predicts nothing.
    this.#release(call, null);
  }

  #find(id: number): HeldCall {
    const call = this.#held.find((candidate) => candidate.id === id);
    if (call !== undefined) return call;
    throw protocolError(`call ${id} is not held by this worker`);
  }

  /** An answer proves that its call has begun; the first one, whether the worker leaves notes at all. */
  #findAnswered(id: number, runMs: number): HeldCall {
    if (this.#finished === 0) return this.#findBegun(id);
    const call = this.#find(id);
    if (!call.knownBegun) begin(call, performance.now() - runMs);
    return call;
  }

  #findBegun(id: number): HeldCall {
    const call = this.#find(id);
    if (!call.knownBegun) this.learnBegun();
    if (call.knownBegun) return call;
    throw protocolError(`an answer to call ${id}, which never began`);
  }

  /** An idle worker gets its message now; a busy one gets the messages of one turn of the event loop in one write. */
  #flushSoon(): void {
    if (this.#held.length === 1) this.#channel.flush();
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
