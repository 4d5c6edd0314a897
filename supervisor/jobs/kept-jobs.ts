/**
 * Keeps jobs that outlive their request: background calls, and those of the gateway. Each is known by an id of the
 * server's own until some time after its end, its result included.
 *
 * Their number is bounded: those that have not ended are in the queue or in a worker, which bound them; of the ended,
 * the oldest go first when they are too many, too large or too old.
 */
import { totalBytes } from '../../protocol/body-assembler.js';
import { ServeError, type ErrorCode } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/messages.js';
import type { Job, Sink } from '../dispatch/job.js';

export interface KeepLimits {
  readonly keepMs: number;
  readonly maxJobs: number;
  /** Size of all results together. */
  readonly maxBytes: number;
}

/** Banana's clients may take ten minutes to come back; a small server has this much memory to spare. */
export const KEEP_LIMITS: KeepLimits = { keepMs: 15 * 60_000, maxJobs: 10_000, maxBytes: 256 * 1024 * 1024 };

export type KeptState = 'queued' | 'running' | 'succeeded' | 'failed' | 'lost';

/**
 * A whole answer without the headers that only its own caller could want. Its body is null if it was too large to keep.
 */
export interface KeptResult {
  readonly head: ReplyHead;
  readonly body: Buffer | null;
}

export class KeptJob implements Sink {
  readonly id: string;
  readonly requestId: string;
  readonly route: string;
  /** Run time as the worker measured it; 0 if the call never ran. */
  runMs = 0;
  /** How long it waited; 0 until it has ended. */
  queueMs = 0;
  readonly createdAt = new Date();
  endedAt: Date | null = null;
  /** Null until it has succeeded. */
  result: KeptResult | null = null;
  error: ServeError | null = null;
  readonly #maxBytes: number;
  /** Null once it has ended: its body and headers are needed no more. */
  #job: Job | null;
  readonly #onEnded: (job: KeptJob) => void;
  readonly #waiting = new Set<() => void>();
  #streamHead: ReplyHead = { status: 200, contentType: '', headers: '', phrase: '' };
  #streamed: Buffer[] = [];
  #streamedBytes = 0;

  constructor(id: string, job: Job, maxBytes: number, onEnded: (job: KeptJob) => void) {
    this.id = id;
    this.#maxBytes = maxBytes;
    this.requestId = job.call.requestId;
    this.route = job.call.route;
    this.#job = job;
    this.#onEnded = onEnded;
  }

  get state(): KeptState {
    if (this.error !== null) return LOST.has(this.error.code) ? 'lost' : 'failed';
    if (this.result !== null) return 'succeeded';
    return this.#job?.begun === true ? 'running' : 'queued';
  }

  get ended(): boolean {
    return this.endedAt !== null;
  }

  /** Calls back once the job has ended, at once if it has. Returns how to stop waiting. */
  onceEnded(callback: () => void): () => void {
    if (this.ended) {
      callback();
      return () => {};
    }
    this.#waiting.add(callback);
    return () => this.#waiting.delete(callback);
  }

  reply(_job: Job, head: ReplyHead, pieces: Buffer[], bodyBytes: number): void {
    this.#succeed(head, pieces, bodyBytes);
  }

  head(_job: Job, head: ReplyHead): void {
    this.#streamHead = head;
  }

  chunk(_job: Job, pieces: Buffer[], taken: () => void): void {
    this.#streamedBytes += totalBytes(pieces);
    if (this.#streamedBytes <= this.#maxBytes) this.#streamed.push(...pieces);
    taken();
  }

  end(): void {
    this.#succeed(this.#streamHead, this.#streamed, this.#streamedBytes);
  }

  fail(_job: Job, error: ServeError): void {
    // The detail is left out: it is for the log, and may be long.
    this.error = new ServeError(error.code, error.message);
    this.#finish();
  }

  /** Copies the answer, so that the memory it came in may be used again. */
  #succeed(head: ReplyHead, pieces: readonly Buffer[], bytes: number): void {
    this.result = {
      head: { ...head, headers: '' },
      body: bytes > this.#maxBytes ? null : Buffer.concat(pieces),
    };
    this.#finish();
  }

  #finish(): void {
    this.#streamed = [];
    this.runMs = this.#job?.runMs ?? 0;
    this.queueMs = this.#job?.queueMs(performance.now()) ?? 0;
    this.#job = null;
    this.endedAt = new Date();
    this.#onEnded(this);
    for (const callback of this.#waiting) callback();
    this.#waiting.clear();
  }
}

/** The error of a job that may have run, and whose end nobody knows. */
const LOST: ReadonlySet<ErrorCode> = new Set(['SERVE_WORKER_LOST']);

export class KeptJobs {
  readonly #limits: KeepLimits;
  readonly #newId: () => string;
  readonly #tell: (job: KeptJob) => void;
  readonly #jobs = new Map<string, KeptJob>();
  /** Ended jobs, in the order of their ends. */
  readonly #ended = new Set<KeptJob>();
  #bytes = 0;
  #sweep: NodeJS.Timeout | null = null;

  /** `onEnded` is told of every job, once, when it has ended. */
  constructor(
    newId: () => string,
    onEnded: (job: KeptJob) => void = () => {},
    limits: KeepLimits = KEEP_LIMITS,
  ) {
    this.#newId = newId;
    this.#tell = onEnded;
    this.#limits = limits;
  }

  /** Number of known jobs, ended ones included. */
  get size(): number {
    return this.#jobs.size;
  }

  get(id: string): KeptJob | null {
    return this.#jobs.get(id) ?? null;
  }

  /** Takes a job over from its caller: the answer comes here. */
  keep(job: Job): KeptJob {
    const kept = new KeptJob(this.#newId(), job, this.#limits.maxBytes / 4, (ended) => this.#onEnded(ended));
    this.#jobs.set(kept.id, kept);
    job.detach(kept);
    return kept;
  }

  /** Ids of those that have not ended. */
  unfinished(): string[] {
    return [...this.#jobs.values()].filter((job) => !job.ended).map(({ id }) => id);
  }

  close(): void {
    if (this.#sweep !== null) clearTimeout(this.#sweep);
    this.#sweep = null;
  }

  #onEnded(job: KeptJob): void {
    this.#tell(job);
    this.#ended.add(job);
    this.#bytes += bytesOf(job);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= this.#limits.maxJobs && this.#bytes <= this.#limits.maxBytes) break;
      this.#forget(oldest);
    }
    this.#watch();
  }

  /** Sets the one timer for all: the job that ended first is the first to go. */
  #watch(): void {
    const [oldest] = this.#ended;
    if (oldest === undefined || this.#sweep !== null) return;
    this.#sweep = setTimeout(() => this.#sweepOld(), this.#ageLeftMs(oldest));
    this.#sweep.unref();
  }

  #sweepOld(): void {
    this.#sweep = null;
    for (const job of this.#ended) {
      if (this.#ageLeftMs(job) > 0) break;
      this.#forget(job);
    }
    this.#watch();
  }

  #ageLeftMs({ endedAt }: KeptJob): number {
    return (endedAt as Date).getTime() + this.#limits.keepMs - Date.now();
  }

  #forget(job: KeptJob): void {
    this.#ended.delete(job);
    this.#jobs.delete(job.id);
    this.#bytes -= bytesOf(job);
  }
}

function bytesOf({ result }: KeptJob): number {
  return result?.body?.length ?? 0;
}
