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
  type JobPage,
  type JobProgress,
  type JobRecord,
  type JobTarget,
  type KeptError,
  type KeptWebhook,
  type ListQuery,
  type NewJob,
  type Outcome,
  type WaitingPlace,
} from '../job-record.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import { NO_LISTENER, type JobStore, type JobStoreListener, type KeepLimits } from '../job-store.js';
import { BodyFiles, LostBody } from './body-files.js';
import { threadIn } from './open-thread.js';
import { reasonOf } from './sqlite-errors.js';
import { TableLink, Uncertain, type OpenedTable, type OpenPort } from './table-link.js';
import {
  ANSWER_LIMIT_MS,
  NOT_KEPT,
  type Need,
  type BegunRow,
  type Effects,
  type KeptBytes,
  type TableEvent,
  type TableOutcome,
} from './table-calls.js';
import { WaitingCounts } from './waiting-counts.js';

export class LocalStore implements JobStore {
  readonly isDurable = true;
  readonly name: string;
  readonly #files: BodyFiles;
  readonly #counts = new WaitingCounts();
  /** Calls that use files, to be waited for at the end. */
  readonly #working = new Set<Promise<unknown>>();
  /** Outcomes that may be stored already, by id and mark. */
  readonly #uncertain = new Set<string>();
  /** Resolves once the files that no job needs are gone. */
  #removals = Promise.resolve();
  /** Set by `open`. */
  #link!: TableLink;
  #listener = NO_LISTENER;
  /** Events before there is a listener. */
  #early: TableEvent[] = [];

  private constructor(folder: string) {
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
    const { link, opened } = await TableLink.open(openPort, {
      onEffects: (effects) => store.#onEffects(effects),
      onReopened: (table) => store.#onReopened(table),
    });
    store.#link = link;
    if (opened === null) return store;
    for (const change of opened.counts) store.#counts.change(change);
    const due = store.#counts.models().map((model) => ({ is: 'due', model }) as const);
    store.#early = [...opened.effects.events, ...due];
    store.#removeFiles(opened.effects.gone);
    return store;
  }

  get listener(): JobStoreListener {
    return this.#listener;
  }

  set listener(listener: JobStoreListener) {
    this.#listener = listener;
    setImmediate(() => {
      if (this.#link.problem !== null) listener.onFailed(this.#link.problem);
      const early = this.#early;
      this.#early = [];
      for (const event of early) this.#tell(event);
    });
  }

  hasDue(model: string): boolean {
    return this.#counts.hasAny(model);
  }

  waiting(target: JobTarget): number {
    return this.#counts.count(target);
  }

  places(): WaitingPlace[] {
    return this.#counts.places();
  }

  accept({ record, call, body, key }: NewJob): Promise<Acceptance> {
    return this.#keeping('job', body, async (kept) => {
      const job = { record, call, key, body: kept };
      const acceptance = await this.#link.send('accept', [job], buffersOf(kept));
      if (acceptance.is === 'accepted') body.release();
      return acceptance;
    });
  }

  withdraw(id: string): Promise<void> {
    return this.#link.send('withdraw', [id]);
  }

  begin(target: JobTarget, token: string): Promise<readonly BegunJob[]> {
    return this.#work(async () => {
      const rows = await this.#link.send('begin', [target, token]);
      try {
        const jobs = await Promise.all(rows.map((row) => this.#withBody(row, token)));
        return jobs.filter((job) => job !== null);
      } catch (error) {
        this.#link.takeBack(token);
        throw error;
      }
    });
  }

  giveBack(id: string, token: string, isLoss: boolean): Promise<void> {
    return this.#link.send('giveBack', [id, token, isLoss]);
  }

  settle(id: string, token: string, outcome: Outcome): Promise<JobRecord | null> {
    if ('error' in outcome) return this.#settle(id, token, outcome);
    const { body, ...answer } = outcome;
    if (body === null) return this.#settle(id, token, { ...answer, body: NOT_KEPT });
    return this.#keeping('result', { pieces: [body], bytes: body.length }, (kept) => {
      if (isNotKept(kept)) this.#listener.onWarning(neverFits(id, body.length));
      return this.#settle(id, token, { ...answer, body: kept });
    });
  }

  progress(id: string, token: string, progress: JobProgress): void {
    this.#link.send('progress', [id, token, progress]).catch(() => {}); // the newest report counts, or none
  }

  cancel(id: string): Promise<JobRecord | null> {
    return this.#link.send('cancel', [id]);
  }

  get(id: string): Promise<JobRecord | null> {
    return this.#link.send('get', [id]);
  }

  async readResult(id: string): Promise<Buffer | null> {
    return this.#readResult(id, await this.#link.send('readResult', [id]));
  }

  list(query: ListQuery): Promise<JobPage> {
    return this.#link.send('list', [query]);
  }

  owe(webhook: Webhook): Promise<void> {
    return this.#link.send('owe', [{ ...webhook, body: Uint8Array.from(webhook.body) }]);
  }

  forgetWebhook(id: string): Promise<void> {
    return this.#link.send('forgetWebhook', [id]);
  }

  endWebhook(jobId: string): Promise<void> {
    return this.#link.send('endWebhook', [jobId]);
  }

  async takeWebhooks(limit: number): Promise<readonly KeptWebhook[]> {
    const taken = await this.#link.send('takeWebhooks', [limit]);
    return Promise.all(
      taken.map(async (one) => {
        if (one.of === 'app') return one;
        return { ...one, body: await this.#readResult(one.record.id, one.body) };
      }),
    );
  }

  probe(): Promise<void> {
    return this.#link.send('probe', []);
  }

  /** Changes nothing: queued jobs stay for the next server. */
  stop(): Promise<void> {
    return Promise.resolve();
  }

  queuedHere(): readonly string[] {
    return [];
  }

  async close(): Promise<void> {
    await this.#quiet();
    await this.#link.close();
    await this.#quiet(); // files that went meanwhile
    this.#listener = NO_LISTENER;
  }

  async #quiet(): Promise<void> {
    await within(ANSWER_LIMIT_MS, Promise.allSettled(this.#working));
  }

  async #settle(id: string, token: string, outcome: TableOutcome): Promise<JobRecord | null> {
    const attempt = `${id} ${token}`;
    const transfer = 'error' in outcome ? [] : buffersOf(outcome.body);
    try {
      const args = [id, token, outcome, this.#uncertain.has(attempt)] as const;
      const record = await this.#link.send('settle', [...args], transfer);
      this.#uncertain.delete(attempt);
      return record;
    } catch (error) {
      if (error instanceof Uncertain) this.#uncertain.add(attempt);
      throw error;
    }
  }

  /** Keeps bytes for a call, whose failure drops them unless its row may be there. */
  #keeping<T>(
    of: Need['of'],
    { pieces, bytes }: Pick<NewJob['body'], 'pieces' | 'bytes'>,
    call: (kept: KeptBytes) => Promise<T>,
  ): Promise<T> {
    return this.#work(async () => {
      let isRefused = false;
      const makeRoom = (): Promise<boolean> =>
        this.#makeRoom({ of, rowBytes: 0, fileBytes: bytes }).catch((error: unknown) => {
          isRefused = true;
          throw error;
        });
      const kept = await this.#files.keep(pieces, bytes, makeRoom).catch((error: unknown) => {
        if (isRefused) throw error;
        throw this.#failure(error);
      });
      try {
        return await call(kept);
      } catch (error) {
        if (!(error instanceof Uncertain)) await this.#files.remove(kept);
        throw error;
      }
    });
  }

  /** The files that go for it are gone when this resolves. */
  async #makeRoom(need: Need): Promise<boolean> {
    const isMade = await this.#link.send('makeRoom', [need]);
    await this.#removals;
    return isMade;
  }

  /** Null: the job's body cannot be read, and the job has failed. */
  async #withBody({ record, call, body }: BegunRow, token: string): Promise<BegunJob | null> {
    try {
      return { record, call, pieces: [await this.#files.read(body)] };
    } catch (error) {
      if (!(error instanceof LostBody)) throw this.#failure(error);
      await this.#link.send('failMarked', [record.id, token, bodyLost(error)]);
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
      this.#listener.onWarning(`the result of the job ${id} cannot be read from the store: ${error.message}`);
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
    for (const change of counts) this.#counts.change(change);
    for (const event of events) this.#tell(event);
    this.#removeFiles(gone);
  }

  #onReopened({ counts, effects }: OpenedTable): void {
    this.#counts.clear();
    for (const change of counts) this.#counts.change(change);
    for (const event of effects.events) this.#tell(event);
    this.#removeFiles(effects.gone);
    for (const model of this.#counts.models()) this.#listener.onDue(model);
  }

  #removeFiles(files: readonly string[]): void {
    if (files.length === 0) return;
    const removals = files.map((file) => this.#files.remove({ file }));
    const all = [this.#removals, ...removals];
    this.#removals = this.#work(() => Promise.all(all).then(() => {}));
  }

  #tell(event: TableEvent): void {
    switch (event.is) {
      case 'due':
        return this.#listener.onDue(event.model);
      case 'changed':
        return this.#listener.onChanged(event.record);
      case 'cancelled':
        return this.#listener.onCancelled(event.id);
      case 'ended unrun':
        return this.#listener.onEndedUnrun(event.record, event.call);
    }
  }
}

function isNotKept({ bytes, file }: KeptBytes): boolean {
  return bytes === null && file === null;
}

function neverFits(id: string, bytes: number): string {
  return `the result of the job ${id} is dropped: the disk of the store can never hold its ${formatBytes(bytes)}`;
}

function bodyLost({ message }: LostBody): KeptError {
  const text = `The body of this job cannot be read from the store of jobs: ${message}.`;
  return keptError(new ServeError('SERVE_INTERNAL', text));
}

/** The memory of a copy, which the table may have. */
function buffersOf({ bytes }: KeptBytes): ArrayBuffer[] {
  return bytes === null ? [] : [bytes.buffer as ArrayBuffer];
}
