/**
 * Runs the calls of a table: all that wait share one transaction, and are answered when it is on the disk. Has the timer of
 * the table too, and knows no thread.
 */
import { ServeError } from '../../../protocol/errors.js';
import type { JobTable } from './job-table.js';
import { reasonOf } from './sqlite-errors.js';
import type { NumberedCall, TableAnswer, TableCall, TableNews } from './table-calls.js';

/** Longest time without a look at the clock, which may have been set. */
const MAX_SLEEP_MS = 60_000;

/** Time after which a failed look at the clock is repeated. */
const RETRY_MS = 1000;

/** These change nothing, or only what the next transaction writes. */
const WITHOUT_WRITE: ReadonlySet<TableCall['name']> = new Set(['get', 'readResult', 'list', 'progress']);

export class TableLoop {
  readonly #table: JobTable;
  /** Names the store, for failures. */
  readonly #name: string;
  readonly #tell: (news: TableNews) => void;
  #timer: NodeJS.Timeout | null = null;
  #timerAtMs = Infinity;

  constructor(table: JobTable, name: string, tell: (news: TableNews) => void) {
    this.#table = table;
    this.#name = name;
    this.#tell = tell;
    this.#watch();
  }

  run(calls: readonly NumberedCall[]): void {
    try {
      this.#tellOf(this.#answer(calls));
    } catch (error) {
      // One that cannot be done, such as one without room on the disk, must not fail the others.
      if (calls.length > 1) for (const one of calls) this.run([one]);
      else for (const { number } of calls) this.#tellOf([{ number, failure: this.#textOf(error) }]);
      return;
    }
    this.#watch();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#timerAtMs = Infinity;
  }

  #answer(calls: readonly NumberedCall[]): TableAnswer[] {
    const step = (): TableAnswer[] =>
      calls.map(({ number, call }) => ({ number, value: callTable(this.#table, call) }));
    return calls.every(({ call }) => WITHOUT_WRITE.has(call.name)) ? step() : this.#table.transaction(step);
  }

  #tellOf(answers: readonly TableAnswer[]): void {
    const effects = this.#table.takeEffects();
    const isNews = Object.values(effects).some((some: readonly unknown[]) => some.length > 0);
    if (answers.length > 0 || isNews) this.#tell({ answers, effects });
  }

  /** Sets the single timer, for the job that is due, expires or is dropped first. */
  #watch(): void {
    const nextMs = this.#nextMs();
    if (nextMs >= this.#timerAtMs) return; // it looks again when it fires
    this.#lookAt(nextMs);
  }

  /** A call that meets the same failure reports it. */
  #nextMs(): number {
    try {
      return this.#table.nextMs();
    } catch {
      return Date.now() + RETRY_MS;
    }
  }

  #lookAt(atMs: number): void {
    this.stop();
    this.#timerAtMs = atMs;
    const sleepMs = Math.min(MAX_SLEEP_MS, Math.max(1, atMs - Date.now()));
    this.#timer = setTimeout(() => this.#tick(), sleepMs);
    this.#timer.unref();
  }

  #tick(): void {
    this.stop();
    try {
      if (this.#table.nextMs() <= Date.now()) this.#table.transaction(() => this.#table.tick());
    } catch {
      this.#lookAt(Date.now() + RETRY_MS); // a call that meets the same failure reports it
      return;
    }
    this.#tellOf([]);
    this.#watch();
  }

  #textOf(error: unknown): string {
    // A mistake in this program has a stack; a failure of the disk has a reason.
    if (error instanceof TypeError || error instanceof ServeError) return error.stack ?? error.message;
    return `${this.#name} cannot be used: ${reasonOf(error)}`;
  }
}

function callTable(table: JobTable, { name, args }: TableCall): unknown {
  return (table[name] as (...given: readonly unknown[]) => unknown).apply(table, args);
}
