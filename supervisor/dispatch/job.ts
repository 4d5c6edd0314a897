/**
 * One call with an owner: its bytes, its times, where its answer goes. A job settles exactly once, whatever
 * happens to its client, its worker or the server.
 */
import type { ServeError } from '../../protocol/errors.js';
import type { Call, DataPart, ReplyHead } from '../../protocol/wire/messages.js';
import { startLimit, type LimitTimer } from '../machine/limit-timer.js';
import { leaveToCollector, type Lease } from '../memory/slabs.js';
import type { BatchRun } from './batch-run.js';
import type { Waiting } from './lines.js';
import { InLine } from './queue.js';

/** A call as a dialect describes it. */
export interface JobCall extends Omit<Call, 'id'> {
  /** Number on the wire: written when a worker gets the call, since a copy of the call cost 2 us. */
  id: number;
  /** Name and version of the model that it is for; they stay in the front, as a worker runs one model. */
  readonly model: string;
  readonly version: string;
}

/** Where a job's answer goes. Exactly one of `reply`, `end` (after `head`) and `fail` is called, once. */
export interface Sink {
  /** A whole answer; the sink owns the pieces. */
  reply(job: Job, head: ReplyHead, pieces: Buffer[], bodyBytes: number, release: () => void): void;
  head(job: Job, head: ReplyHead): void;
  /** Part of a stream. `taken` is called once the client's connection has room for more. */
  chunk(job: Job, pieces: Buffer[], taken: () => void): void;
  end(job: Job): void;
  /** Also after `head`: the client must then be able to tell that the stream was cut. */
  fail(job: Job, error: ServeError): void;
}

/** The client's side of a call that talks both ways, besides its sink: what the worker says on it. */
export interface Conversation {
  /** Part of a message for the client. `taken` is called once the connection has room for more. */
  data(part: DataPart, pieces: Buffer[], taken: () => void): void;
  /** The worker takes that much more: bytes, and DATA_OVERHEAD_BYTES per part. */
  credit(bytes: number): void;
  /** The app waits for the client's next message; it has had all that was sent. */
  waiting(): void;
  /** Ends as soon as the app waits for the client, who is told why. */
  goAway(why: ServeError): void;
  /** The app closes the connection; the call ends with its function. */
  close(code: number, reason: string): void;
}

/** Of a job that is detached before it is submitted. */
export const NOWHERE: Sink = { reply() {}, head() {}, chunk() {}, end() {}, fail() {} };

/** A worker, as far as a job it holds is concerned. */
export interface JobHolder {
  /** Finds out which of its jobs have begun, and tells them. A job asks for itself: see `Job.begun`. */
  learnBegun(): void;
  /** Nobody waits for this job any more. */
  abandon(job: Job, reason: string): void;
  /** A part of a message from the client, within the credit given. The worker's from now on. */
  sendData(job: Job, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void;
}

const UNLENT = { release: leaveToCollector };

export class Job extends InLine implements Waiting {
  readonly call: JobCall;
  readonly pieces: readonly Buffer[];
  readonly acceptedAtMs: number;
  /** When the client stops waiting, on the monotonic clock; null without a deadline, or once detached. */
  deadlineAtMs: number | null;
  /** Also told of a whole answer, before the sink is: the pieces are the sink's. */
  onReply: ((head: ReplyHead, pieces: readonly Buffer[]) => void) | null = null;
  /** The client's side of a call that talks both ways; null for all others. */
  conversation: Conversation | null = null;
  /** Run time as the worker measured it; 0 if the call never ran. */
  runMs = 0;
  /** The batch that it was given to a worker in; null for one that runs alone. */
  batch: BatchRun | null = null;
  /** Reply size in bytes; 0 until the reply is complete. */
  replyBytes = 0;
  readonly #lease: Pick<Lease, 'release'>;
  #sink: Sink;
  /** `sent` may be out of date, since a worker begins without a word: `begun` looks it up. */
  #state: 'queued' | 'sent' | 'begun' | 'settled' = 'queued';
  #losses = 0;
  /** 0 until it is known that the call has begun. */
  #beganAtMs = 0;
  #holder: JobHolder | null = null;
  #deadlineTimer: LimitTimer | null = null;

  constructor(
    call: JobCall,
    pieces: readonly Buffer[],
    times: { acceptedAtMs: number; deadlineAtMs: number | null },
    sink: Sink,
    lease: Pick<Lease, 'release'> = UNLENT,
  ) {
    super();
    this.call = call;
    this.pieces = pieces;
    this.acceptedAtMs = times.acceptedAtMs;
    this.deadlineAtMs = times.deadlineAtMs;
    this.#sink = sink;
    this.#lease = lease;
  }

  get bodyBytes(): number {
    return this.call.bodyBytes;
  }

  get route(): string {
    return this.call.route;
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

  /** Whether its call runs now; false once it is settled. Looked up in its worker's note. */
  checkBegun(): boolean {
    this.#lookUp();
    return this.#state === 'begun';
  }

  /** Whether its call is known to have begun, whatever became of it. */
  get hasBegun(): boolean {
    return this.#beganAtMs !== 0;
  }

  /** Workers that died holding this job before it began. */
  get losses(): number {
    return this.#losses;
  }

  /** The worker that holds the job, from when it is sent until it has ended there or was given up. */
  get holder(): JobHolder | null {
    return this.#holder;
  }

  /** Gives the memory of the body back: the worker has read all of it. */
  releaseBody(): void {
    this.#lease.release();
  }

  /** Time spent waiting so far, or until the call began. */
  queueMs(nowMs: number): number {
    this.#lookUp();
    return (this.#beganAtMs === 0 ? nowMs : this.#beganAtMs) - this.acceptedAtMs;
  }

  /** A worker gets it. */
  sendTo(holder: JobHolder): void {
    this.#state = 'sent';
    this.#holder = holder;
  }

  /** Its worker says that the call has begun. */
  begin(nowMs: number): void {
    if (this.settled) return;
    this.#state = 'begun';
    this.#beganAtMs = nowMs;
  }

  /** No worker holds it any more. Returns the one that did. */
  leaveHolder(): JobHolder | null {
    const holder = this.#holder;
    this.#holder = null;
    return holder;
  }

  /** Its worker died, and had not begun it: it waits again. */
  comeBack(): void {
    this.#state = 'queued';
  }

  /** Its worker died. Returns how many workers of it have. */
  countLoss(): number {
    this.#losses += 1;
    return this.#losses;
  }

  /** Calls back when the client stops waiting, unless it is detached or `stopDeadline` is called before. */
  startDeadline(onPassed: () => void): void {
    if (this.deadlineAtMs === null) return;
    this.#deadlineTimer = startLimit(Math.max(0, this.deadlineAtMs - performance.now()), onPassed);
  }

  stopDeadline(): void {
    this.#deadlineTimer?.stop();
    this.#deadlineTimer = null;
  }

  /** Frees the job from its caller, who has an answer: no deadline holds any more, and what comes goes to `sink`. */
  detach(sink: Sink): void {
    this.#sink = sink;
    this.deadlineAtMs = null;
    this.stopDeadline();
  }

  /** `release` gives the memory of the pieces back; it is the sink's to call. */
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
    if (!this.settled) this.#sink.chunk(this, pieces, taken);
  }

  end(runMs: number): void {
    if (this.#settle(runMs)) this.#sink.end(this);
  }

  fail(error: ServeError, runMs = 0): void {
    this.#lookUp(); // its owner is told how long it waited
    if (this.#settle(runMs)) this.#sink.fail(this, error);
  }

  #settle(runMs: number): boolean {
    if (this.settled) return false;
    this.#state = 'settled';
    this.runMs = runMs;
    return true;
  }

  #lookUp(): void {
    if (this.#state === 'sent') this.#holder?.learnBegun();
  }
}
