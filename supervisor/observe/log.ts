/** The server's own log: pino, to stderr, one line per event. Text for people, JSON for machines. */
import { pino, type Logger } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { LogLevel } from '../options/groups/logs.js';
import type { LogFile } from './log-file.js';
import type { OutputWriter } from './output-writer.js';

export type Log = Logger;

/** Lines kept for a reader that has stopped reading; later ones are dropped. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** `writer` null: the lines go to the files only, which get them without colours and with their day. */
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

/** The library throws at some fields, such as a `name` that has a `toString`; they may be a client's, and must not end the server. */
function orAsItIs(pretty: Form): Form {
  return (line) => {
    try {
      return pretty(line);
    } catch {
      return line;
    }
  };
}

/** The library writes these fields before the message, as they are; they may be a client's, too. */
const BEFORE_MESSAGE = ['name', 'pid', 'hostname', 'caller'];

const ON_ONE_LINE = {
  singleLine: true,
  ignore: '', // the library's own word is `hostname`
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
