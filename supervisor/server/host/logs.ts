/** The logs of one server: on stderr and stdout, and in the log files that its options name. */
import { createLog, type Log } from '../../observe/log.js';
import { LineLog } from '../../observe/line-log.js';
import { openLogFiles, type LogFile } from '../../observe/log-file.js';
import { OutputWriter } from '../../observe/output-writer.js';
import { RecentLines } from '../../observe/recent-lines.js';
import type { ServerOptions } from '../../options/resolve.js';

/** The names of Multi Model Server: a line for each call; lines of the server and prints of its workers; the prints alone. */
const LOG_FILES = { access: 'access_log.log', server: 'mms_log.log', model: 'model_log.log' } as const;
/** Metrics of the server, and of custom services. */
const METRIC_FILES = { host: 'mms_metrics.log', model: 'model_metrics.log' } as const;

export class ServerLogs {
  readonly writers = { stdout: new OutputWriter(1), stderr: new OutputWriter(2) };
  readonly format: ServerOptions['logFormat'];
  /** The server's own log. */
  readonly log: Log;
  /** The access log; null if it is neither shown nor written to a file. */
  readonly calls: Log | null;
  /** The last lines, for the page; null without a page. */
  readonly recent: RecentLines | null;
  /** Files that get a copy of the workers' output. */
  readonly printFiles: readonly LogFile[];
  /** Logs of metrics lines: the server's, and the custom services'. */
  readonly metrics: { readonly host: LineLog; readonly model: LineLog };
  readonly #files: readonly LogFile[];

  /** `folder`: base of relative paths. */
  constructor(options: ServerOptions, folder: string) {
    const { logFormat, logLevel, logLocation, metricsLocation } = options;
    this.format = logFormat;
    this.recent = options.page ? new RecentLines() : null;
    const onTrouble = (text: string): void => this.log.warn(text);
    const { access, server, model } = openLogFiles(logLocation, folder, LOG_FILES, onTrouble);
    const metrics = openLogFiles(metricsLocation, folder, METRIC_FILES, onTrouble);
    this.log = createLog(logFormat, logLevel, this.writers.stderr, present(server), this.recent);
    const shown = options.accessLog && this.log.isLevelEnabled('info') ? this.writers.stderr : null;
    this.calls =
      shown === null && access === null
        ? null
        : createLog(logFormat, 'info', shown, present(access), this.recent);
    this.printFiles = present(server, model);
    const metricsShown = this.log.isLevelEnabled('info') ? this.writers.stderr : null;
    const metricsLog = (file: LogFile | null): LineLog =>
      new LineLog(logFormat, metricsShown, present(file), this.recent);
    this.metrics = { host: metricsLog(metrics.host), model: metricsLog(metrics.model) };
    this.#files = present(access, server, model, metrics.host, metrics.model);
  }

  /** Flushes all lines, for at most `limitMs`, and closes the files. */
  async close(limitMs: number): Promise<void> {
    const flushed = Object.values(this.writers).map((writer) => writer.flush(limitMs));
    await Promise.all([...flushed, ...this.#files.map((file) => file.close(limitMs))]);
  }
}

/** The files that are not null. */
function present(...files: readonly (LogFile | null)[]): LogFile[] {
  return files.filter((file) => file !== null);
}
