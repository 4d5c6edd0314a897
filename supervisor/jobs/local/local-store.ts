/**
 * Keeps jobs in a folder of this machine, for one server at a time: they outlive it, and a kill or a power loss at any moment.
 * SQLite has them, in a thread of its own; large bodies and results are files.
 */
import { ServeError } from '../../../protocol/errors.js';
import { within } from '../../machine/limit-timer.js';
import { formatBytes } from '../../options/units.js';
import {
  keptError,
  type Acceptance,
  type BegunJob,
  type JobProgress,
  type JobRecord,
  type JobTarget,
  type KeptError,
  type KeptWebhook,
  type NewJob,
  type Outcome,
} from '../job-record.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import { NO_LISTENER, StoreBase, type JobStore, type KeepLimits } from '../job-store.js';
import { copyExactly } from '../running-job.js';
import { WaitingQueues } from '../waiting-jobs.js';
import { ANSWER_LIMIT_MS, BodyFiles, LostBody, type KeptBytes } from './body-files.js';
import type { Need } from './disk-room.js';
import type { Effects } from './job-rows.js';
import { reasonOf } from './sqlite-errors.js';
import { TableLink, threadIn, Uncertain, type OpenPort } from './table-link.js';
import type { TableCalls } from './table-loop.js';

/** Larger bodies and results are files: as rows they would hold up all others. */
const MAX_ROW_BYTES = 1024 ** 2;

type Asks<Name extends keyof TableCalls> = (
  ...args: Parameters<TableCalls[Name]>
) => Promise<ReturnType<TableCalls[Name]>>;

export class LocalStore extends StoreBase implements JobStore {
  readonly isDurable = true;
  readonly name: string;
  readonly #files: BodyFiles;
  protected readonly counts = new WaitingQueues((place) => ({ place, length: 0 }));
  /** Calls that use files, to be waited for at the end. */
  readonly #working = new Set<Promise<unknown>>();
  /** Outcomes that may be stored already, by id and token. */
  readonly #uncertain = new Set<string>();
  /** Resolves once the files that no job needs are gone. */
  #removals = Promise.resolve();
  readonly withdraw = this.#asks('withdraw');
  readonly giveBack = this.#asks('giveBack');
  readonly cancel = this.#asks('cancel');
  readonly get = this.#asks('get');
  readonly list = this.#asks('list');
  readonly forgetWebhook = this.#asks('forgetWebhook');
  readonly endWebhook = this.#asks('endWebhook');
  readonly probe = this.#asks('probe');
  /** Set by `open`. */
  #link!: TableLink;

  private constructor(folder: string) {
    super();
    this.name = `local (${folder})`;
    this.#files = new BodyFiles(folder);
  }

  /** `openPort`: opens the table elsewhere, for tests. @throws CannotOpen, with the cure */
  static async open(
    folder: string,
    limits: KeepLimits,
    openPort: OpenPort = threadIn(folder, limits),
  ): Promise<LocalStore> {
    const store = new LocalStore(folder);
    store.#link = await TableLink.open(openPort, (effects, isAll) => {
      if (isAll) store.counts.clear();
      store.#onEffects(effects);
    });
    if (store.#link.problem !== null) store.tell('onFailed', store.#link.problem);
    return store;
  }

  accept({ record, call, body, key }: NewJob): Promise<Acceptance> {
    return this.#keeping('job', body, async (kept) => {
      if (kept === null) return { is: 'full' };
      const refusal = await this.#link.send('accept', { record, call, key, body: kept });
      if (refusal !== null) return refusal;
      body.release();
      return { is: 'accepted', record };
    });
  }

  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    return this.#work(async () => {
      const begun = await this.#link.send('begin', target, token);
      try {
        const jobs = begun.map(async ({ body, ...job }): Promise<BegunJob | null> => {
          const piece = await this.#readBody(job.record.id, token, body);
          return piece && { ...job, pieces: [piece] };
        });
        const readable = (await Promise.all(jobs)).filter((job) => job !== null);
        return readable.length > 0 || begun.length === 0 ? readable : await this.begin(target, token);
      } catch (error) {
        this.#link.takeBack(token);
        throw error;
      }
    });
  }

  settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    if ('error' in outcome || outcome.body === null) return this.#settle(id, token, outcome, null);
    const { body, ...answer } = outcome;
    return this.#keeping('result', { pieces: [body], bytes: body.length }, (kept) => {
      if (kept === null) this.tell('onWarning', neverFits(id, body.length));
      return this.#settle(id, token, { ...answer, body: null }, kept);
    });
  }

  progress(id: string, token: string, progress: JobProgress): void {
    this.#link.send('progress', id, token, progress).catch(() => {}); // the newest report counts, or none
  }

  async readResult(id: string): Promise<Buffer | null> {
    return this.#readResult(id, await this.#link.send('readResult', id));
  }

  owe(webhook: Webhook): Promise<void> {
    return this.#link.send('owe', { ...webhook, body: Uint8Array.from(webhook.body) });
  }

  async takeWebhooks(limit: number): Promise<readonly KeptWebhook[]> {
    const taken = (await this.#link.send('takeWebhooks', limit)).map(async (one) => {
      if (one.of === 'app') return one;
      return { ...one, body: await this.#readResult(one.record.id, one.body) };
    });
    return Promise.all(taken);
  }

  async close(): Promise<void> {
    await this.#quiet();
    await this.#link.close();
    await this.#quiet(); // files that went meanwhile
    this.listener = NO_LISTENER;
  }

  /** A call that is the table's alone. */
  #asks<Name extends keyof TableCalls>(name: Name): Asks<Name> {
    return (...args) => this.#link.send(name, ...args);
  }

  async #quiet(): Promise<void> {
    await within(ANSWER_LIMIT_MS, Promise.allSettled(this.#working));
  }

  async #settle(
    id: string,
    token: string,
    outcome: Outcome,
    kept: KeptBytes | null,
  ): Promise<JobRecord | null> {
    const attempt = `${id} ${token}`;
    try {
      const isAgain = this.#uncertain.has(attempt);
      const record = await this.#link.send('settle', id, token, outcome, kept, isAgain);
      this.#uncertain.delete(attempt);
      return record;
    } catch (error) {
      if (error instanceof Uncertain) this.#uncertain.add(attempt);
      throw error;
    }
  }

  /** Keeps bytes for a call, whose failure drops them unless its row may be there. Null: the disk can never hold them. */
  #keeping<T>(
    of: Need['of'],
    { pieces, bytes }: Pick<NewJob['body'], 'pieces' | 'bytes'>,
    call: (kept: KeptBytes | null) => Promise<T>,
  ): Promise<T> {
    // What is posted to the table is copied with all the memory that it is a part of.
    if (bytes <= MAX_ROW_BYTES) return call({ bytes: copyExactly(pieces, bytes), file: null });
    return this.#work(async () => {
      let refusal: unknown = null;
      const makeRoom = (): Promise<boolean> =>
        this.#makeRoom({ of, rowBytes: 0, fileBytes: bytes }).catch((error: unknown) => {
          refusal = error;
          throw error;
        });
      const kept = await this.#files.keep(pieces, bytes, makeRoom).catch((error: unknown) => {
        throw error === refusal ? error : this.#failure(error);
      });
      try {
        return await call(kept);
      } catch (error) {
        if (!(error instanceof Uncertain)) await this.#files.remove(kept?.file ?? null);
        throw error;
      }
    });
  }

  /** The files that go for it are gone when this resolves. */
  async #makeRoom(need: Need): Promise<boolean> {
    const isMade = await this.#link.send('makeRoom', need);
    await this.#removals;
    return isMade;
  }

  /** Null: the job's body cannot be read, and the job has failed. */
  async #readBody(id: string, token: string, body: KeptBytes): Promise<Buffer | null> {
    try {
      return await this.#files.read(body);
    } catch (error) {
      if (!(error instanceof LostBody)) throw this.#failure(error);
      await this.#link.send('failBegun', id, token, bodyLost(error));
      return null;
    }
  }

  /** Null if the job has none, or if it cannot be read. */
  async #readResult(id: string, kept: KeptBytes | null): Promise<Buffer | null> {
    if (kept === null) return null;
    try {
      return await this.#files.read(kept);
    } catch (error) {
      if (!(error instanceof LostBody)) throw this.#failure(error);
      this.tell('onWarning', `the result of the job ${id} cannot be read from the store: ${error.message}`);
      return null;
    }
  }

  #failure(cause: unknown): Error {
    return new Error(`${this.name} cannot be used: ${reasonOf(cause)}`, { cause });
  }

  async #work<T>(step: () => Promise<T>): Promise<T> {
    const work = step();
    this.#working.add(work);
    try {
      return await work;
    } finally {
      this.#working.delete(work);
    }
  }

  #onEffects({ counts, events, gone }: Effects): void {
    const due = new Set<string>();
    for (const { place, by } of counts) {
      this.counts.change(place, (queue) => (queue.length += by));
      if (by > 0) due.add(place.model);
    }
    for (const event of events) this.tell(...event);
    for (const model of due) this.tell('onDue', model);
    if (gone.length === 0) return;
    const all = [this.#removals, ...gone.map((file) => this.#files.remove(file))];
    this.#removals = this.#work(() => Promise.all(all).then(() => {}));
  }
}

function neverFits(id: string, bytes: number): string {
  return `the result of the job ${id} is dropped: the disk of the store can never hold its ${formatBytes(bytes)}`;
}

function bodyLost({ message }: LostBody): KeptError {
  const text = `The body of this job cannot be read from the store of jobs: ${message}.`;
  return keptError(new ServeError('SERVE_INTERNAL', text));
}
