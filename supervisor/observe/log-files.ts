/** The files of a log by the names that Multi Model Server gave them, where an operator wants any. */
import { join, resolve } from 'node:path';
import { LogFile } from './log-file.js';

export interface LogFiles {
  /** A line for each call; null: no files are wanted, as with the others. */
  readonly access: LogFile | null;
  /** What the server says and its workers print. */
  readonly server: LogFile | null;
  /** What workers print. */
  readonly model: LogFile | null;
}

/** `location` null: none is wanted. `folder`: that of relative paths. `onTrouble` is told once for each file. */
export function openLogFiles(
  location: string | null,
  folder: string,
  onTrouble: (text: string) => void,
): LogFiles {
  if (location === null) return { access: null, server: null, model: null };
  const file = (name: string): LogFile => new LogFile(join(resolve(folder, location), name), onTrouble);
  return { access: file('access_log.log'), server: file('mms_log.log'), model: file('model_log.log') };
}

export interface MetricFiles {
  /** What the server measures; null: no files are wanted, as with the other. */
  readonly host: LogFile | null;
  /** What custom services measure. */
  readonly model: LogFile | null;
}

/** As `openLogFiles`. */
export function openMetricFiles(
  location: string | null,
  folder: string,
  onTrouble: (text: string) => void,
): MetricFiles {
  if (location === null) return { host: null, model: null };
  const file = (name: string): LogFile => new LogFile(join(resolve(folder, location), name), onTrouble);
  return { host: file('mms_metrics.log'), model: file('model_metrics.log') };
}

/** Those that there are. */
export function present(...files: readonly (LogFile | null)[]): LogFile[] {
  return files.filter((file) => file !== null);
}
