/** The server's own log: pino to stderr, one line per event, as text or JSON. */
import { pino, type Logger } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { LogLevel } from '../options/groups/logs.js';
import type { LogFile } from './log-file.js';
import type { OutputWriter } from './output-writer.js';

export type Log = Logger;

/** Bytes of lines kept while the reader does not read; later lines are dropped. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** `writer` null: lines go to files only. Lines in files have no colours, and have the date. */
export function createLog(
  format: 'text' | 'json',
  level: LogLevel,
  writer: OutputWriter | null,
  files: readonly LogFile[] = [],
): Log {
  const show = (line: string): void => {
    if (writer !== null && writer.writableLength < MAX_UNREAD_BYTES) writer.writeLines(line);
  };
  const keep = (line: string): void => {
    for (const file of files) file.writeLines(line);
  };
  const [shown, kept] = format === 'json' ? [asItIs, asItIs] : [prettyForPeople(), prettyForFiles()];
  const write = (line: string): void => {
    if (writer !== null) show(shown(line));
    if (files.length > 0) keep(kept(line));
  };
  const timestamp = format === 'json' ? pino.stdTimeFunctions.isoTime : true;
  return pino({ level, base: null, timestamp }, { write });
}

type Form = (line: string) => string;

const asItIs: Form = (line) => line;

/** pino-pretty throws for some fields, such as a `name` with a `toString`. Clients can send these; they must not end the server. */
function orAsItIs(pretty: Form): Form {
  return (line) => {
    try {
      return pretty(line);
    } catch {
      return line;
    }
  };
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

function prettyForPeople(): Form {
  const colorize = process.stderr.isTTY === true && process.env['NO_COLOR'] === undefined;
  return orAsItIs(prettyFactory({ ...ON_ONE_LINE, colorize, translateTime: 'SYS:HH:MM:ss.l' }));
}

function prettyForFiles(): Form {
  const translateTime = "UTC:yyyy-mm-dd'T'HH:MM:ss.l'Z'";
  return orAsItIs(prettyFactory({ ...ON_ONE_LINE, colorize: false, translateTime }));
}
