/** The server's own log: pino, to stderr, one line per event. Text for people, JSON for machines. */
import { pino, type Logger } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { LogLevel } from '../options/table.js';
import type { OutputWriter } from './output-writer.js';

export type Log = Logger;

/** Lines kept for a reader that has stopped reading; later ones are dropped. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

export function createLog(format: 'text' | 'json', level: LogLevel, writer: OutputWriter): Log {
  const write = (line: string): void => {
    if (writer.writableLength < MAX_UNREAD_BYTES) writer.writeLines(line);
  };
  if (format === 'json') {
    return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
  }
  const colorize = process.stderr.isTTY === true && process.env['NO_COLOR'] === undefined;
  const pretty = prettyFactory({ colorize, translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
  return pino({ level, base: null }, { write: (line: string) => write(pretty(line)) });
}
