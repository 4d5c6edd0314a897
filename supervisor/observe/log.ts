/** The server's own log: pino to stderr, one line per event, as text or JSON. */
import { pino, type LogFn, type Logger } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { ServerOptions } from '../options/resolve.js';
import { escapeControls, indented, withoutControls, messageOf } from './log-text.js';
import type { LogFile } from './log-file.js';
import { showLines, type OutputWriter } from './output-writer.js';
import type { RecentLines } from './recent-lines.js';

/** A pino logger, as far as it is used. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'isLevelEnabled'>;

/**
 * `writer` null: lines go to files only. Lines in files have no colours, and have the date. `recent` gets the lines that are
 * shown, too.
 */
export function createLog(
  format: 'text' | 'json',
  level: ServerOptions['logLevel'],
  writer: OutputWriter | null,
  files: readonly LogFile[] = [],
  recent: Pick<RecentLines, 'addJson'> | null = null,
): Log {
  const colorize = process.stderr.isTTY === true && process.env['NO_COLOR'] === undefined;
  const [shown, kept] =
    format === 'json'
      ? [escapeControls, escapeControls]
      : [forText(colorize, 'SYS:HH:MM:ss.l'), forText(false, "UTC:yyyy-mm-dd'T'HH:MM:ss.l'Z'")];
  const write = (line: string): void => {
    if (writer !== null) {
      recent?.addJson(line);
      showLines(writer, shown(line));
    }
    if (files.length === 0) return;
    const lines = kept(line);
    for (const file of files) file.writeLines(lines);
  };
  const timestamp = format === 'json' ? pino.stdTimeFunctions.isoTime : true;
  const formatters = { level: (label: string) => ({ level: label }) };
  const json =
    format === 'json' ? { mixin: () => ({ pid: process.pid }), hooks: { logMethod: splitStack } } : {};
  return pino({ level, base: null, timestamp, formatters, ...json }, { write });
}

/** Writes a message with a stack trace as one line, with the stack beside it. */
function splitStack(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [fields, text] = typeof args[0] === 'string' ? [{}, args[0]] : (args as [object, unknown]);
  if (typeof text !== 'string' || !text.includes('\n')) return method.apply(this, args);
  const { msg, ...stack } = messageOf(text);
  method.call(this, { ...fields, ...stack }, msg);
}

/** pino-pretty throws for some fields, such as a `name` with a `toString`. Clients can send these; they must not end the server. */
function forText(colorize: boolean, translateTime: string): (line: string) => string {
  const pretty = prettyFactory({ ...ON_ONE_LINE, colorize, translateTime });
  return (line) => {
    try {
      return pretty(readable(JSON.parse(line) as Line));
    } catch {
      return escapeControls(line);
    }
  };
}

interface Line extends Readonly<Record<string, unknown>> {
  readonly level: string;
  readonly time: number;
  readonly msg: string;
}

/**
 * The line as text shows it: without control characters, and without a method and a path that its message begins with. If
 * the message has several lines, such as a stack, the fields stand on the first one.
 */
function readable({ level, time, msg, ...fields }: Line): object {
  const { method, path, ...others } = fields;
  const rest = msg.startsWith(`${String(method)} ${String(path)}`) ? others : fields;
  const text = indented(withoutControls(msg));
  const lineEnd = text.indexOf('\n');
  const shown = JSON.parse(JSON.stringify(rest), (_key, value: unknown) =>
    typeof value === 'string' ? withoutControls(value) : value,
  ) as object;
  if (lineEnd < 0 || Object.keys(shown).length === 0) return { level, time, msg: text, ...shown };
  return { level, time, msg: `${text.slice(0, lineEnd)} ${JSON.stringify(shown)}${text.slice(lineEnd)}` };
}

/** pino-pretty writes these fields unescaped before the message; clients can send them too. */
const BEFORE_MESSAGE = ['name', 'pid', 'hostname', 'caller'];

const ON_ONE_LINE = {
  singleLine: true,
  ignore: '', // the default would be `hostname`
  customPrettifiers: Object.fromEntries(BEFORE_MESSAGE.map((name) => [name, inOneLine])),
};

function inOneLine(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).replace(/\p{Cc}/gu, ' ');
}
