/**
 * The logs of one server: on stderr and stdout, and in the log files that its options name. Reports that workers are still
 * starting: with log lines at growing intervals, or on a status line of the terminal.
 */
import { resolve } from 'node:path';
import { isatty } from 'node:tty';
import type { ServerOptions } from '../options/resolve.js';
import { LogFile } from './log-file.js';
import { createLog, type Log } from './log.js';
import { OutputRelay } from './output-relay.js';
import { OutputWriter, StatusLine, showLines } from './output-writer.js';
import { printCopies } from './prints.js';
import { RecentLines } from './recent-lines.js';
import { escapeControls, indented, withoutControls } from './log-text.js';

export class ServerLogs {
  readonly writers = { stdout: new OutputWriter(1), stderr: new OutputWriter(2) };
  /** The server's own log. */
  readonly log: Log;
  /** The access log; null if it is neither shown nor written to a file. */
  readonly calls: Log | null;
  /** The last lines, for the page; null without a page. */
  readonly recent: RecentLines | null;
  /** Files that get a copy of the workers' output. */
  readonly printFiles: readonly LogFile[];
  /** Logs of metrics lines: the server's, and the custom services'. */
  readonly metrics: Readonly<Record<'host' | 'model', ReturnType<typeof lineLog>>>;
  readonly #files: LogFile[] = [];

  /** `folder`: base of relative paths. Files have the names of Multi Model Server. */
  constructor(options: ServerOptions, folder: string) {
    const { logFormat: format, logLocation, metricsLocation, accessLog } = options;
    const open = (location: string | null, name: string): LogFile[] => {
      if (location === null) return [];
      const file = new LogFile(resolve(folder, location, name), (text) => this.log.warn(text));
      this.#files.push(file);
      return [file];
    };
    const recent = options.page ? new RecentLines() : null;
    const own = open(logLocation, 'mms_log.log'); // lines of the server and prints of its workers
    const access = open(logLocation, 'access_log.log'); // a line for each call
    this.recent = recent;
    this.printFiles = [...own, ...open(logLocation, 'model_log.log')];
    this.log = createLog(format, options.logLevel, this.writers.stderr, own, recent);
    const infoTo = this.log.isLevelEnabled('info') ? this.writers.stderr : null;
    const callsTo = accessLog ? infoTo : null;
    this.calls =
      callsTo === null && access.length === 0 ? null : createLog(format, 'info', callsTo, access, recent);
    const metricsLog = (name: string) => lineLog(format, infoTo, open(metricsLocation, name), recent);
    this.metrics = { host: metricsLog('mms_metrics.log'), model: metricsLog('model_metrics.log') };
  }

  /** Relays the output of workers to stdout, stderr, files and the page. `workers` returns their current number. */
  relay({ logFormat, logPrefix }: ServerOptions, workers: () => number): OutputRelay {
    const format = logFormat === 'text' && logPrefix === 'potassium' ? 'potassium' : logFormat;
    const copies = this.printFiles.length === 0 ? null : printCopies(logFormat, this.printFiles);
    const receivers = [copies, this.recent].filter((one) => one !== null);
    return new OutputRelay(format, workers, this.writers, receivers);
  }

  /** Flushes all lines, for at most `limitMs`, and closes the files. */
  async close(limitMs: number): Promise<void> {
    const flushed = Object.values(this.writers).map((writer) => writer.flush(limitMs));
    await Promise.all([...flushed, ...this.#files.map((file) => file.close(limitMs))]);
  }
}

/** A status line if the log is text on a terminal and its level shows `info`; else lines of the log. */
export function startReporter(
  format: ServerOptions['logFormat'],
  { log, writers }: ServerLogs,
): ReturnType<typeof logReporter> {
  const isTerminal = isatty(2) && process.env['TERM'] !== 'dumb';
  return format === 'text' && isTerminal && log.isLevelEnabled('info')
    ? terminalReporter(writers)
    : logReporter(log);
}

/** Pauses double up to a minute: an init of ten minutes logs about a dozen lines. */
export function logReporter(log: Pick<Log, 'info'>) {
  return {
    pauseMs: (reported: number) => Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (reported - 1)),
    report: (text: string) => log.info(text),
    end: () => {},
  };
}

const FIRST_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 60_000;
const REDRAW_MS = 1000;

/** Width of a terminal that does not report its own. */
const USUAL_COLUMNS = 80;

function terminalReporter({ stdout, stderr }: ServerLogs['writers']): ReturnType<typeof logReporter> {
  const line = new StatusLine();
  stderr.statusLine = line;
  if (isatty(1)) stdout.statusLine = line; // most likely the same terminal
  const show = (text: string): void => {
    line.text = text.slice(0, (process.stderr.columns || USUAL_COLUMNS) - 1);
    stderr.write('');
  };
  return { pauseMs: () => REDRAW_MS, report: show, end: () => show('') };
}

const INFO = 'info';

/**
 * Writes log lines that may occur several times per call, in the form of `log.ts`: pino-pretty takes 30 us per line. Lines
 * are written together at the end of the turn of the event loop. `writer` null: the lines go to the files only. `recent` gets the
 * lines that are shown, too.
 */
export function lineLog(
  format: 'text' | 'json',
  writer: OutputWriter | null,
  files: readonly LogFile[],
  recent: Pick<RecentLines, 'addText'> | null = null,
) {
  /** Pending lines for the terminal, and for files; equal in JSON. */
  let [shown, kept] = ['', ''];
  const now = timesOfNow();
  const flush = (): void => {
    if (writer !== null) showLines(writer, shown);
    for (const file of files) file.writeLines(kept);
    [shown, kept] = ['', ''];
  };
  return {
    /** In JSON `fields` come before the text. Text lines have none: log parsers of Multi Model Server read to their end. */
    info(text: string, fields: Readonly<Record<string, string | number>> | null = null): void {
      if (writer === null && files.length === 0) return;
      if (shown === '') setImmediate(flush);
      if (writer !== null) recent?.addText(INFO, text);
      const { ofDay, iso } = now();
      if (format === 'json') {
        const line = { level: INFO, time: iso, pid: process.pid, ...fields, msg: text };
        shown += escapeControls(`${JSON.stringify(line)}\n`);
        kept = shown;
        return;
      }
      const line = indented(withoutControls(`INFO: ${text}`));
      shown += `[${ofDay}] ${line}\n`;
      kept += `[${iso}] ${line}\n`;
    },
  };
}

/** Returns a function that formats the current time, at most once per millisecond. */
function timesOfNow(): () => { readonly ofDay: string; readonly iso: string } {
  let timeMs = 0;
  let times = { ofDay: '', iso: '' };
  return () => {
    const nowMs = Date.now();
    if (nowMs === timeMs) return times;
    timeMs = nowMs;
    const now = new Date(nowMs);
    const two = (value: number): string => String(value).padStart(2, '0');
    const ms = String(now.getMilliseconds()).padStart(3, '0');
    const ofDay = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}.${ms}`;
    times = { ofDay, iso: now.toISOString() };
    return times;
  };
}
