/**
 * The calls one worker holds, in the order sent: the running one first, those sent ahead behind it.
 *
 * 1. `assign` sends a call. 2. Its ending frees the seat, then answers the owner. Whether a call has begun is looked
 * up in the worker's note, when it matters: at a death, when a limit seems to be over, when somebody asks.
 * A call whose owner has gone keeps its seat until the worker has ended it.
 */
import { MONOTONIC_OFFSET_MS, type BegunNote } from '../../protocol/begun-note.js';
import { BodyAssembler, totalBytes } from '../../protocol/body-assembler.js';
import type { Channel } from '../../protocol/channel.js';
import { ServeError, asCallErrorCode, protocolError } from '../../protocol/errors.js';
import type { DataPart, Message, ReplyHead } from '../../protocol/messages.js';
import type { Job } from '../dispatch/job.js';
import { slabs } from '../memory/slabs.js';
import type { KillCause } from './exit-report.js';
import { RunClock, resume, type ClockedCall } from './run-clock.js';
import { Turns } from './turns.js';

/** A handler that was told to abort gets this long before its process is killed. */
export const ABORT_GRACE_MS = 1000;

/** However short the run timeout, a worker has this long to begin: a large body, a busy machine are no fault of it. */
export const MIN_BEGIN_MS = 5000;

/** A call the worker holds, in the order sent. */
interface Assignment extends ClockedCall {
  readonly id: number;
  readonly job: Job;
  begun: boolean;
  /** Of a call that streams or talks. */
  turns: Turns | null;
}

export interface CallLimits {
  readonly runTimeoutMs: number;
  readonly maxOutputBytes: number;
}

export interface HeldCallsListener {
  onFinished(job: Job, runMs: number | null): void;
  /** The call failed for a reason that the log may want to know. */
  onCallError(job: Job, error: ServeError): void;
  /** Only the death of the process helps: a handler that did not obey, or a call that never even began. */
  onHopeless(cause: KillCause): void;
}

type ConversationMessage = Message & { type: 'data' | 'credit' | 'waiting' | 'close' };

/** An answer whose body is still arriving. */
interface PartialResult {
  readonly assignment: Assignment;
  readonly head: ReplyHead;
  readonly runMs: number;
}

export class HeldCalls {
  readonly #channel: Channel;
  readonly #listener: HeldCallsListener;
  readonly #readBegun: () => BegunNote;
  readonly #results = new BodyAssembler<PartialResult>((bytes) => slabs.take(bytes));
  #limits: CallLimits;
  #runClock: RunClock<Assignment>;
  #graceTimer: NodeJS.Timeout | null = null;
  #held: Assignment[] = [];
  #nextId = 1;
  #inBurst = false;
  #finished = 0;

  constructor(channel: Channel, readBegun: () => BegunNote, limits: CallLimits, listener: HeldCallsListener) {
    this.#channel = channel;
    this.#readBegun = readBegun;
    this.#listener = listener;
    this.#limits = limits;
    this.#runClock = this.#newRunClock();
  }

  /** Holds for calls that begin from now on. */
  set limits(limits: CallLimits) {
    this.#limits = limits;
    this.#runClock.stop();
    this.#runClock = this.#newRunClock();
  }

  get count(): number {
    return this.#held.length;
  }

  /** Calls that began and ended here. */
  get finished(): number {
    return this.#finished;
  }

  /** Looks up whether the first call has begun. */
  get running(): Assignment | null {
    this.learnBegun();
    const { first } = this;
    return first?.begun === true ? first : null;
  }

  /** The running call, or the one that should begin now. */
  get first(): Assignment | null {
    return this.#held[0] ?? null;
  }

  /** All of them, and which have begun is up to date. */
  jobs(): Job[] {
    this.learnBegun();
    return this.#held.map((assignment) => assignment.job);
  }

  /** Sends a call. */
  assign(job: Job): void {
    const id = this.#nextId;
    this.#nextId = id === 0xffff_ffff ? 1 : id + 1;
    const { call, pieces, bodyBytes } = job;
    call.id = id;
    const isFirst = this.#held.length === 0;
    this.#held.push({
      id,
      job,
      begun: false,
      beganAtMs: isFirst ? performance.now() : 0,
      graceMs: this.#beginGraceMs,
      pausedMs: 0,
      pausedSinceMs: null,
      turns: null,
    });
    if (isFirst) this.#runClock.start();
    this.#channel.sendBody({ type: 'call', calls: [call], inlineBytes: [bodyBytes] }, id, pieces, bodyBytes);
    this.#flushSoon();
  }

  /** The job is settled; tells the worker to stop working for it. */
  abandon(job: Job, reason: string): void {
    const assignment = this.#held.find((candidate) => candidate.job === job);
    if (assignment === undefined) return;
    resume(assignment); // from now on it waits for no reader: its clock runs
    if (this.#channel.dropBody(assignment.id)) {
      this.#channel.send({ type: 'cancel', id: assignment.id, reason });
      this.#flushSoon();
    } else {
      this.#release(assignment, null); // it never left: the worker knows nothing of it
    }
  }

  sendData(job: Job, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    const assignment = this.#held.find((candidate) => candidate.job === job);
    if (assignment === undefined) return;
    turnsOf(assignment).onSaid();
    this.#channel.send({ type: 'data', id: assignment.id, ...part }, bytes);
    this.#flushSoon();
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
        this.#onChunk(this.#findBegun(message.id), pieces);
        return true;
      case 'data':
      case 'credit':
      case 'waiting':
      case 'close':
        this.#onConversation(this.#findBegun(message.id), message, pieces);
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
    this.#runClock.stop();
    if (this.#graceTimer !== null) clearTimeout(this.#graceTimer);
  }

  /** Marks what the worker's note says has begun: the call it names, and those sent before it. */
  learnBegun(): void {
    if (this.#held.length === 0) return;
    const { id, atMs } = this.#readBegun();
    const last = this.#held.findIndex((assignment) => assignment.id === id);
    for (const assignment of this.#held.slice(0, last + 1)) {
      if (!assignment.begun) this.#begin(assignment, atMs - MONOTONIC_OFFSET_MS);
    }
  }

  #begin(assignment: Assignment, atMs: number): void {
    const nowMs = performance.now();
    // A time that cannot be is another clock's.
    const beganAtMs = atMs >= assignment.job.acceptedAtMs && atMs <= nowMs ? atMs : nowMs;
    assignment.begun = true;
    assignment.beganAtMs = beganAtMs;
    assignment.graceMs = 0;
    assignment.job.begin(beganAtMs);
  }

  #onResult(message: Message & { type: 'result' }, pieces: Buffer[]): void {
    const assignment = this.#findAnswered(message.id, message.runMs);
    if (this.#channel.isSending(message.id)) {
      throw protocolError(`an answer to call ${message.id}, whose body was not read to its end`);
    }
    if (message.bodyBytes > this.#limits.maxOutputBytes) {
      throw protocolError(
        `a result of ${message.bodyBytes} bytes; ${this.#limits.maxOutputBytes} are allowed`,
      );
    }
    const owner = { assignment, head: message, runMs: message.runMs };
    const whole = this.#results.start(message.id, owner, message.bodyBytes, pieces);
    if (whole !== null) this.#onWholeResult(owner, whole);
  }

  #onWholeResult({ assignment, head, runMs }: PartialResult, pieces: Buffer[]): void {
    const bodyBytes = totalBytes(pieces);
    assignment.job.replyBytes = bodyBytes;
    // Feed the worker first, then answer the client.
    this.#release(assignment, runMs);
    // An answer proves that the worker has read the whole body: nothing of it waits in the pipe.
    for (const piece of assignment.job.pieces) slabs.give(piece);
    assignment.job.reply(head, pieces, bodyBytes, runMs);
  }

  #onChunk(assignment: Assignment, pieces: Buffer[]): void {
    if (assignment.job.settled) return; // cancelled: it needs no credit to see that
    assignment.job.chunk(pieces, this.#onceTaken(assignment, pieces));
  }

  /** @throws SERVE_PROTOCOL if the call is no WebSocket */
  #onConversation(assignment: Assignment, message: ConversationMessage, pieces: Buffer[]): void {
    const { job, id } = assignment;
    const { conversation } = job;
    if (conversation === null) throw protocolError(`${message.type} in call ${id}, which is no WebSocket`);
    if (job.settled) return;
    if (message.type === 'data') conversation.data(message, pieces, this.#onceTaken(assignment, pieces));
    else if (message.type === 'credit') conversation.credit(message.bytes);
    else if (message.type === 'close') conversation.close(message.code, message.reason);
    else if (turnsOf(assignment).onWaiting(message.received)) conversation.waiting();
  }

  /** The worker sent these to the client; to be called back when that has taken them, and may be sent as much again. */
  #onceTaken(assignment: Assignment, pieces: readonly Buffer[]): () => void {
    const bytes = totalBytes(pieces);
    const turns = turnsOf(assignment);
    turns.onSent(bytes);
    return () => {
      turns.onTaken(bytes);
      this.#channel.send({ type: 'credit', id: assignment.id, bytes });
      this.#flushSoon();
    };
  }

  #onCallError(message: Message & { type: 'error' }): void {
    const assignment = this.#find(message.id);
    if (!assignment.begun && message.runMs > 0) this.#begin(assignment, performance.now() - message.runMs);
    const error = new ServeError(asCallErrorCode(message.code), message.message, { detail: message.detail });
    if (!assignment.job.settled) this.#listener.onCallError(assignment.job, error);
    assignment.job.fail(error, message.runMs);
    this.#release(assignment, null);
  }

  /** The call has ended in the worker: its seat is free. `runMs` null: it tells nothing about the next ones. */
  #release(assignment: Assignment, runMs: number | null): void {
    const index = this.#held.indexOf(assignment);
    if (index >= 0) this.#held.splice(index, 1);
    if (index === 0) this.#awaitBegin();
    if (assignment.begun) this.#finished += 1;
    this.#listener.onFinished(assignment.job, runMs);
  }

  /** The next call's turn has come: it begins in time, or its worker is frozen. */
  #awaitBegin(): void {
    const [first] = this.#held;
    if (first === undefined) return;
    if (!first.begun) first.beganAtMs = performance.now();
    this.#runClock.start(); // also for one that has begun: the clock may have run out on the one before
  }

  get #beginGraceMs(): number {
    return Math.max(0, MIN_BEGIN_MS - this.#limits.runTimeoutMs);
  }

  #onRunTimeout(assignment: Assignment): void {
    if (!assignment.begun) {
      this.#listener.onHopeless('it did not begin its call');
      return;
    }
    const message = `The call ran longer than ${this.#limits.runTimeoutMs} ms (--run-timeout).`;
    const error = new ServeError('SERVE_INFERENCE_TIMEOUT', message);
    if (!assignment.job.settled) this.#listener.onCallError(assignment.job, error);
    assignment.job.fail(error, this.#limits.runTimeoutMs);
    this.#channel.send({ type: 'cancel', id: assignment.id, reason: 'the run timeout passed' });
    this.#channel.flush();
    this.#graceTimer = setTimeout(() => {
      if (this.#held.includes(assignment)) this.#listener.onHopeless('run timeout');
    }, ABORT_GRACE_MS);
  }

  #onEnd(assignment: Assignment, runMs: number): void {
    assignment.job.end(runMs);
    // How long a stream lasts is up to its reader as well; it predicts nothing.
    this.#release(assignment, null);
  }

  #find(id: number): Assignment {
    const assignment = this.#held.find((candidate) => candidate.id === id);
    if (assignment !== undefined) return assignment;
    throw protocolError(`call ${id} is not held by this worker`);
  }

  /** An answer proves that its call has begun; the first one, whether the worker leaves notes at all. */
  #findAnswered(id: number, runMs: number): Assignment {
    if (this.#finished === 0) return this.#findBegun(id);
    const assignment = this.#find(id);
    if (!assignment.begun) this.#begin(assignment, performance.now() - runMs);
    return assignment;
  }

  #findBegun(id: number): Assignment {
    const assignment = this.#find(id);
    if (!assignment.begun) this.learnBegun();
    if (assignment.begun) return assignment;
    throw protocolError(`an answer to call ${id}, which never began`);
  }

  /** What an idle worker waits for goes out now; for a busy one, a turn's messages leave in one write at its end. */
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

  #newRunClock(): RunClock<Assignment> {
    return new RunClock(
      this.#limits.runTimeoutMs,
      () => {
        this.learnBegun();
        return this.first;
      },
      (assignment) => this.#onRunTimeout(assignment),
    );
  }
}

function turnsOf(assignment: Assignment): Turns {
  return (assignment.turns ??= new Turns(assignment));
}
