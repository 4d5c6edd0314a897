/** Receives the answer of a job that a worker runs, and turns it into the outcome of this attempt. */
import { totalBytes } from '../../protocol/wire/body-assembler.js';
import type { ServeError } from '../../protocol/errors.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { Job, Sink } from '../dispatch/job.js';
import { keptError, type Outcome } from './job-record.js';

export class RunningJob implements Sink {
  readonly #maxBytes: number;
  readonly #onOutcome: (outcome: Outcome, job: Job) => void;
  #head: ReplyHead = { status: 200, contentType: '', headers: '', phrase: '' };
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** The bodies of answers above `maxBytes` are not kept. `onOutcome` is called once. */
  constructor(maxBytes: number, onOutcome: (outcome: Outcome, job: Job) => void) {
    this.#maxBytes = maxBytes;
    this.#onOutcome = onOutcome;
  }

  reply(job: Job, head: ReplyHead, pieces: Buffer[], bodyBytes: number): void {
    this.#succeed(job, head, pieces, bodyBytes);
  }

  head(_job: Job, head: ReplyHead): void {
    this.#head = head;
  }

  chunk(_job: Job, pieces: Buffer[], taken: () => void): void {
    this.#bytes += totalBytes(pieces);
    if (this.#bytes <= this.#maxBytes) this.#pieces.push(...pieces);
    else this.#pieces = [];
    taken();
  }

  end(job: Job): void {
    this.#succeed(job, this.#head, this.#pieces, this.#bytes);
  }

  fail(job: Job, error: ServeError): void {
    this.#onOutcome({ ...measuredOf(job), error: keptError(error) }, job);
  }

  /** Copies the answer into memory of exactly its size: a slice of Buffer's pool would keep 8 KiB for each small result. */
  #succeed(job: Job, head: ReplyHead, pieces: readonly Buffer[], bytes: number): void {
    const body = bytes > this.#maxBytes ? null : copyExactly(pieces, bytes);
    this.#onOutcome({ ...measuredOf(job), head, bytes, body }, job);
  }
}

function measuredOf(job: Job): { runMs: number; queueMs: number } {
  return { runMs: job.runMs, queueMs: job.queueMs(performance.now()) };
}

function copyExactly(pieces: readonly Buffer[], bytes: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes);
  let filled = 0;
  for (const piece of pieces) filled += piece.copy(copy, filled);
  return copy;
}
