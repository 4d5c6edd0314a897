/** Opens the log files and metric files of Multi Model Server's names, if the operator wants files. */
import { join, resolve } from 'node:path';
import { LogFile } from './log-file.js';

export interface LogFiles {
  /** A line for each call. All three are null if no files are wanted. */
  readonly access: LogFile | null;
  /** Lines of the server and prints of its workers. */
  readonly server: LogFile | null;
  /** Prints of workers. */
  readonly model: LogFile | null;
}

/** `location` null: no files are wanted. `folder`: base of relative paths. `onTrouble` is called at most once per file. */
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
  /** Metrics of the server. Both are null if no files are wanted. */
  readonly host: LogFile | null;
  /** Metrics of custom services. */
  readonly model: LogFile | null;
}

/** Parameters as of `openLogFiles`. */
export function openMetricFiles(
  location: string | null,
  folder: string,
  onTrouble: (text: string) => void,
): MetricFiles {
  if (location === null) return { host: null, model: null };
  const file = (name: string): LogFile => new LogFile(join(resolve(folder, location), name), onTrouble);
  return { host: file('mms_metrics.log'), model: file('model_metrics.log') };
}

/** The files that are not null. */
export function present(...files: readonly (LogFile | null)[]): LogFile[] {
  return files.filter((file) => file !== null);
}
