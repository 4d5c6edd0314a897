/**
 * Runs the calls of a table: all that wait share one transaction, and are answered when it is on the disk. Has the timer of
 * the table too, and knows no thread.
 */
import { ServeError } from '../../../protocol/errors.js';
import { BookTimer } from '../book-timer.js';
import type { JobTable } from './job-table.js';
import { reasonOf } from './sqlite-errors.js';
import type { NumberedCall, TableAnswer, TableCall, TableNews } from './table-calls.js';

const READS: ReadonlySet<TableCall['name']> = new Set(['get', 'readResult', 'list']);

export class TableLoop {
  readonly #table: JobTable;
  /** Names the store, for failures. */
  readonly #name: string;
  readonly #tell: (news: TableNews) => void;
  readonly timer: BookTimer;

  constructor(table: JobTable, name: string, tell: (news: TableNews) => void) {
    this.#table = table;
    this.#name = name;
    this.#tell = tell;
    this.timer = new BookTimer(table, () => {
      table.transaction(() => table.tick());
      this.#tellOf([]);
    });
    this.timer.watch();
  }

  run(calls: readonly NumberedCall[]): void {
    const step = (): TableAnswer[] =>
      calls.map((call) => ({ number: call.number, value: callTable(this.#table, call) }));
    try {
      this.#tellOf(calls.every(({ name }) => READS.has(name)) ? step() : this.#table.transaction(step));
    } catch (error) {
      // One that cannot be done, such as one without room on the disk, must not fail the others.
      if (calls.length > 1) for (const one of calls) this.run([one]);
      else for (const { number } of calls) this.#tellOf([{ number, failure: this.#textOf(error) }]);
      return;
    }
    this.timer.watch();
  }

  #tellOf(answers: readonly TableAnswer[]): void {
    const effects = this.#table.takeEffects();
    const isNews = Object.values(effects).some((some: readonly unknown[]) => some.length > 0);
    if (answers.length > 0 || isNews) this.#tell({ answers, effects });
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
