/** Opens the table of jobs in a folder. */
import type { KeepLimits } from '../job-store.js';
import { removeOrphans } from './body-files.js';
import { boundLog, lookAtDisk } from './disk-room.js';
import { explained, openDatabase, type Database, type DatabaseClass } from './job-database.js';
import { JobTable } from './job-table.js';
import type { Effects } from './table-data.js';

export interface TableOptions {
  readonly folder: string;
  readonly limits: KeepLimits;
  /** This server has not opened the table before, so that all attempts in it are those of another. */
  readonly isFirst: boolean;
}

export interface OpenTable {
  readonly database: Database;
  readonly table: JobTable;
  /** Counts from zero, and the ends of attempts that a server which died had begun. */
  readonly opened: Effects;
}

/** @throws CannotOpen */
export function openTable(Database: DatabaseClass, { folder, limits, isFirst }: TableOptions): OpenTable {
  const database = openDatabase(Database, folder);
  try {
    const look = lookAtDisk(database, folder);
    boundLog(database, look);
    const table = new JobTable(database, limits, look);
    if (isFirst) {
      table.transaction(() => table.recover());
      removeOrphans(folder, table.files());
    }
    return { database, table, opened: table.opened() };
  } catch (error) {
    database.close();
    throw explained(error, folder);
  }
}
