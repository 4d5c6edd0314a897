/** Reports that workers are still starting: with log lines at growing intervals, or on a status line of the terminal. */
import { isatty } from 'node:tty';
import type { StartReporter } from '../../models/slow-starts.js';
import type { Log } from '../../observe/log.js';
import { StatusLine } from '../../observe/output-writer.js';
import type { ServerLogs } from './logs.js';

const FIRST_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 60_000;
const REDRAW_MS = 1000;

/** Width of a terminal that does not report its own. */
const USUAL_COLUMNS = 80;

/** A status line if the log is text on a terminal and its level shows `info`; else lines of the log. */
export function chooseStartReporter(
  format: 'text' | 'json',
  log: Log,
  writers: ServerLogs['writers'],
): StartReporter {
  const isTerminal = isatty(2) && process.env['TERM'] !== 'dumb';
  return format === 'text' && isTerminal && log.isLevelEnabled('info')
    ? terminalReporter(writers)
    : logReporter(log);
}

/** Pauses double up to a minute: an init of ten minutes logs about a dozen lines. */
export function logReporter(log: Pick<Log, 'info'>): StartReporter {
  return {
    pauseMs: (reported) => Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (reported - 1)),
    report: (text) => log.info(text),
    end: () => {},
  };
}

function terminalReporter({ stdout, stderr }: ServerLogs['writers']): StartReporter {
  const line = new StatusLine();
  stderr.statusLine = line;
  if (isatty(1)) stdout.statusLine = line; // most likely the same terminal
  const show = (text: string): void => {
    line.text = text.slice(0, (process.stderr.columns || USUAL_COLUMNS) - 1);
    stderr.write('');
  };
  return { pauseMs: () => REDRAW_MS, report: show, end: () => show('') };
}
