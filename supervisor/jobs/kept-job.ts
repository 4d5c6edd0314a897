/** A job that outlives its request: running in this process, or read from its record. */
import { totalBytes } from '../../protocol/wire/body-assembler.js';
import { ServeError, type ErrorCode } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { Job, Sink } from '../dispatch/job.js';
import type { JobEnd, JobRecord, KeptError, KeptResult, KeptState } from './job-store.js';

/** Error codes of jobs that may have run, with unknown result. */
const LOST: ReadonlySet<ErrorCode> = new Set(['SERVE_WORKER_LOST']);

export interface KeptJobOptions {
  /** Results above this size are not kept. */
  readonly maxResultBytes: number;
  /** Called once, when the job has ended. */
  onEnded(job: KeptJob): void;
}

export class KeptJob implements Sink {
  readonly id: string;
  readonly requestId: string;
  readonly model: string;
  readonly version: string;
  readonly route: string;
  /** Run time as the worker measured it; 0 if the call never ran. */
  runMs = 0;
  /** Time in the queue; 0 until it has ended. */
  queueMs = 0;
  readonly createdAt: Date;
  endedAt: Date | null = null;
  /** Null until it has succeeded. */
  result: KeptResult | null = null;
  error: ServeError | null = null;
  readonly #options: KeptJobOptions | null;
  /** Null once it has ended, to free its body and headers. */
  #job: Job | null;
  readonly #waiting = new Set<() => void>();
  #streamHead: ReplyHead = { status: 200, contentType: '', headers: '', phrase: '' };
  #streamed: Buffer[] = [];
  #streamedBytes = 0;

  /** `job` and `options` are null for a job that is read from its record. */
  constructor(
    { id, requestId, model, version, route, createdAt, end }: JobRecord,
    job: Job | null,
    options: KeptJobOptions | null,
  ) {
    this.id = id;
    this.requestId = requestId;
    this.model = model;
    this.version = version;
    this.route = route;
    this.createdAt = new Date(createdAt);
    this.#job = job;
    this.#options = options;
    if (end !== null) this.#takeEnd(end);
  }

  /** Looks up whether a running job has begun: the worker's note says so. */
  lookUpState(): KeptState {
    if (this.error !== null) return LOST.has(this.error.code) ? 'lost' : 'failed';
    if (this.result !== null) return 'succeeded';
    return this.#job?.checkBegun() === true ? 'running' : 'queued';
  }

  get ended(): boolean {
    return this.endedAt !== null;
  }

  /** Calls back when the job has ended, at once if it has already. Returns a function that stops waiting. */
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
    // Without the detail, which is for the log and may be long.
    const { code, message, retryAfterS, status, kind, issues } = error;
    const retry = retryAfterS === undefined ? {} : { retryAfterS };
    this.error = new ServeError(code, message, { ...retry, status, kind, issues });
    this.#finish();
  }

  get #maxBytes(): number {
    return this.#options?.maxResultBytes ?? 0;
  }

  /** Copies the answer into memory of exactly its size: a slice of Buffer's pool would keep 8 KiB for each small result. */
  #succeed(head: ReplyHead, pieces: readonly Buffer[], bytes: number): void {
    this.result = {
      head: { ...head, headers: '' },
      body: bytes > this.#maxBytes ? null : copyExactly(pieces, bytes),
    };
    this.#finish();
  }

  #finish(): void {
    this.#streamed = [];
    this.runMs = this.#job?.runMs ?? 0;
    this.queueMs = this.#job?.queueMs(performance.now()) ?? 0;
    this.#job = null;
    this.endedAt = new Date();
    this.#options?.onEnded(this);
    for (const callback of this.#waiting) callback();
    this.#waiting.clear();
  }

  #takeEnd({ endedAt, runMs, queueMs, result, error }: JobEnd): void {
    this.endedAt = new Date(endedAt);
    this.runMs = runMs;
    this.queueMs = queueMs;
    this.result = result;
    this.error = error === null ? null : new ServeError(error.code, error.message, error);
  }
}

function copyExactly(pieces: readonly Buffer[], bytes: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes);
  let filled = 0;
  for (const piece of pieces) filled += piece.copy(copy, filled);
  return copy;
}

/** The end of a job, for its record. */
export function endOf(kept: KeptJob): JobEnd {
  const { endedAt, runMs, queueMs, result, error } = kept;
  const state = kept.lookUpState();
  return {
    state: state === 'succeeded' || state === 'lost' ? state : 'failed',
    endedAt: (endedAt as Date).getTime(),
    runMs,
    queueMs,
    result,
    error: error === null ? null : keptError(error),
  };
}

export function keptError({ code, message, status, kind, issues }: ServeError): KeptError {
  return { code, message, status, kind, issues };
}
