/** Keeps jobs in memory: they are lost with the process. */
import { shuttingDown } from '../../protocol/errors.js';
import { BookTimer } from './book-timer.js';
import { JobBook } from './job-book.js';
import {
  keptError,
  type Acceptance,
  type BegunJob,
  type JobPage,
  type JobProgress,
  type JobRecord,
  type JobTarget,
  type KeptWebhook,
  type ListQuery,
  type NewJob,
  type Outcome,
} from './job-record.js';
import { failedUnrun } from './job-rules.js';
import type { JobStore, KeepLimits } from './job-store.js';
import { MemoryRows, type InMemory } from './memory-rows.js';
import { StoreBase } from './store-base.js';

export class MemoryStore extends StoreBase implements JobStore {
  readonly name = 'memory';
  readonly isDurable = false;
  readonly #rows = new MemoryRows();
  protected readonly counts = this.#rows.waiting;
  readonly #book: JobBook<InMemory>;
  readonly #timer: BookTimer;

  constructor(limits: KeepLimits) {
    super();
    this.#book = new JobBook(this.#rows, limits, this.tell, false);
    this.#timer = new BookTimer(this.#book, () => this.#book.tick());
  }

  accept(job: NewJob): Promise<Acceptance> {
    return this.#done(this.#book.accept(job) ?? { is: 'accepted', record: job.record });
  }

  withdraw(id: string): Promise<void> {
    return this.#done(this.#book.withdraw(id));
  }

  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    const begun = this.#book.begin(target, token);
    return this.#done(begun.map(({ record, call, body }) => ({ record, call, pieces: body.pieces })));
  }

  giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    return this.#done(this.#book.giveBack(id, token, isLoss));
  }

  settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    const input = this.#rows.byId(id)?.input;
    const record = this.#book.settle(id, token, outcome, 'error' in outcome ? null : outcome.body);
    // An answer proves that the worker has read all of the body.
    if (record !== null && !('error' in outcome)) input?.body.release();
    return this.#done(record);
  }

  progress(id: string, token: string, progress: JobProgress): void {
    this.#book.progress(id, token, progress);
  }

  cancel(id: string): Promise<JobRecord | null> {
    return this.#done(this.#book.cancel(id));
  }

  get(id: string): Promise<JobRecord | null> {
    return Promise.resolve(this.#book.get(id));
  }

  readResult(id: string): Promise<Buffer | null> {
    return Promise.resolve(this.#book.readResult(id));
  }

  list(query: ListQuery): Promise<JobPage> {
    return Promise.resolve(this.#book.list(query));
  }

  /** Webhooks are lost with this process anyway. */
  owe(): Promise<void> {
    return DONE;
  }

  forgetWebhook(): Promise<void> {
    return DONE;
  }

  endWebhook(): Promise<void> {
    return DONE;
  }

  takeWebhooks(): Promise<readonly KeptWebhook[]> {
    return NO_WEBHOOKS;
  }

  queuedHere(): string[] {
    return this.#rows.inState('queued').map(({ record }) => record.id);
  }

  stop(): Promise<void> {
    for (const row of this.#rows.inState('queued'))
      this.#book.endUnrun(row, failedUnrun(row.record, STOPPED, Date.now()));
    return DONE;
  }

  close(): Promise<void> {
    this.#timer.stop();
    return DONE;
  }

  /** Answers, and sets the timer if its time comes earlier now. */
  #done<T>(answer: T): Promise<T> {
    this.#timer.watch();
    return Promise.resolve(answer);
  }
}

const DONE = Promise.resolve();
const NO_WEBHOOKS = Promise.resolve([]);
const STOPPED = keptError(shuttingDown());
