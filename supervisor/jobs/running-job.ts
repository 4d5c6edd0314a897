/** Receives the answer of a job that a worker runs, and turns it into the outcome of this attempt. */
import { totalBytes } from '../../protocol/wire/body-assembler.js';
import type { ServeError } from '../../protocol/errors.js';
import { MAX_PROGRESS_CHARS } from '../../protocol/wire/limits.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { Call, Sink } from '../dispatch/call.js';
import { keptError, type JobProgress, type Outcome } from './job-record.js';

const PROGRESS_MS = 1000;

export class RunningJob implements Sink {
  readonly #maxBytes: number;
  readonly #onOutcome: (outcome: Outcome, job: Call) => void;
  readonly #onProgress: (progress: JobProgress) => void;
  #head: ReplyHead = { status: 200, contentType: '', headers: '', phrase: '' };
  #pieces: Buffer[] = [];
  #bytes = 0;
  #progress: JobProgress | null = null;
  /** Set for a second after a report was told. */
  #timer: NodeJS.Timeout | null = null;

  /**
   * The bodies of answers above `maxBytes` are not kept. `onOutcome` is called once, when its worker has let go of the job;
   * `onProgress` at most once a second: the newest report counts, and the outcome has the last.
   */
  constructor(
    maxBytes: number,
    onOutcome: (outcome: Outcome, job: Call) => void,
    onProgress: (progress: JobProgress) => void,
  ) {
    this.#maxBytes = maxBytes;
    this.#onOutcome = onOutcome;
    this.#onProgress = onProgress;
  }

  reply(job: Call, head: ReplyHead, pieces: Buffer[], bodyBytes: number): void {
    this.#succeed(job, head, pieces, bodyBytes);
  }

  head(_job: Call, head: ReplyHead): void {
    this.#head = head;
  }

  chunk(_job: Call, pieces: Buffer[], taken: () => void): void {
    this.#bytes += totalBytes(pieces);
    if (this.#bytes <= this.#maxBytes) this.#pieces.push(...pieces);
    else this.#pieces = [];
    taken();
  }

  end(job: Call): void {
    this.#succeed(job, this.#head, this.#pieces, this.#bytes);
  }

  progress(_job: Call, fraction: number, text: string): void {
    this.#progress = { fraction, text: text.slice(0, MAX_PROGRESS_CHARS) };
    if (this.#timer === null) this.#tellProgress(this.#progress);
  }

  /** The handler of a job that has passed its limit may still run, and report: another attempt must not begin meanwhile. */
  fail(job: Call, error: ServeError): void {
    const measured = measuredOf(job);
    job.onceLetGo(() => {
      this.#end(job, { ...measured, progress: this.#progress, error: keptError(error) });
    });
  }

  /** Copies the answer into memory of exactly its size: a slice of Buffer's pool would keep 8 KiB for each small result. */
  #succeed(job: Call, head: ReplyHead, pieces: readonly Buffer[], bytes: number): void {
    const body = bytes > this.#maxBytes ? null : copyExactly(pieces, bytes);
    this.#end(job, { ...measuredOf(job), progress: this.#progress, head, bytes, body });
  }

  #end(job: Call, outcome: Outcome): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#onOutcome(outcome, job);
  }

  #tellProgress(told: JobProgress): void {
    this.#onProgress(told);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#progress !== null && this.#progress !== told) this.#tellProgress(this.#progress);
    }, PROGRESS_MS).unref();
  }
}

function measuredOf(job: Call): { runMs: number; queueMs: number } {
  return { runMs: job.runMs, queueMs: job.queueMs(performance.now()) };
}

/** Copies bytes into memory of exactly their size. */
export function copyExactly(pieces: readonly Buffer[], bytes: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes);
  let filled = 0;
  for (const piece of pieces) filled += piece.copy(copy, filled);
  return copy;
}
