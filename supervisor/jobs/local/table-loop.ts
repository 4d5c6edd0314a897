/**
 * An open table of jobs, and the loop that runs its calls: all that wait share one transaction, and are answered when it is on
 * the disk. Has the timer of the table too, and knows no thread.
 */
import { ServeError } from '../../../protocol/errors.js';
import { BookTimer } from '../job-book.js';
import type { KeepLimits } from '../job-store.js';
import { removeOrphans } from './body-files.js';
import { boundLog, lookAtDisk } from './disk-room.js';
import { databaseFile, explained, openDatabase, type Database, type DatabaseClass } from './job-database.js';
import type { Effects } from './job-rows.js';
import { JobTable } from './job-table.js';
import { reasonOf } from './sqlite-errors.js';

export interface TableOptions {
  readonly folder: string;
  readonly limits: KeepLimits;
  /** This server has not opened the table before, so that all attempts in it are those of another. */
  readonly isFirst: boolean;
}

/** Calls of the table, as those of a `JobStore`, but each at once and whole. */
export type TableCalls = Omit<JobTable, 'endUnrun' | 'nextMs' | 'recover' | 'rows' | 'tick' | 'transaction'>;

/** One call, by its name and a number. */
export type TableCall = {
  [Name in keyof TableCalls]: {
    readonly number: number;
    readonly name: Name;
    readonly args: Parameters<TableCalls[Name]>;
  };
}[keyof TableCalls];

/** Told when all that the calls have changed is on the disk; a failure says why its call was not done. */
export interface TableNews {
  readonly answers: readonly {
    readonly number: number;
    readonly value?: unknown;
    readonly failure?: string;
  }[];
  readonly effects: Effects;
}

const READS: ReadonlySet<TableCall['name']> = new Set(['get', 'readResult', 'list']);

export class TableLoop {
  readonly database: Database;
  readonly table: JobTable;
  /** Counts from zero, and the ends of attempts that a server which died had begun. */
  readonly opened: Effects;
  /** Names the store, for failures. */
  readonly #name: string;
  readonly #tell: (news: TableNews) => void;
  readonly #timer: BookTimer;

  /** Opens the table in a folder. @throws CannotOpen */
  constructor(Database: DatabaseClass, options: TableOptions, tell: (news: TableNews) => void) {
    const { folder, limits, isFirst } = options;
    this.#name = databaseFile(folder);
    this.#tell = tell;
    this.database = openDatabase(Database, folder);
    try {
      const look = lookAtDisk(this.database, folder);
      boundLog(this.database, look);
      const table = new JobTable(this.database, limits, look);
      this.table = table;
      if (isFirst) {
        table.transaction(() => table.recover());
        removeOrphans(folder, table.rows.files());
      }
      this.opened = { ...table.rows.takeEffects(), counts: table.rows.countWaiting() };
      this.#timer = new BookTimer(table, () => {
        table.transaction(() => table.tick());
        this.#tellOf([]);
      });
      this.#timer.watch();
    } catch (error) {
      this.database.close();
      throw explained(error, folder);
    }
  }

  run(calls: readonly TableCall[]): void {
    const step = (): TableNews['answers'] =>
      calls.map((call) => ({ number: call.number, value: callTable(this.table, call) }));
    try {
      this.#tellOf(calls.every(({ name }) => READS.has(name)) ? step() : this.table.transaction(step));
    } catch (error) {
      // One that cannot be done, such as one without room on the disk, must not fail the others.
      if (calls.length > 1) for (const one of calls) this.run([one]);
      else for (const { number } of calls) this.#tellOf([{ number, failure: this.#textOf(error) }]);
      return;
    }
    this.#timer.watch();
  }

  close(): void {
    this.#timer.stop();
    this.database.close();
  }

  #tellOf(answers: TableNews['answers']): void {
    const effects = this.table.rows.takeEffects();
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
