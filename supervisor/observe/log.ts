/**
 * The server's own log: pino, to stderr, one line per event. Text for people, JSON for machines.
 * Written by a background thread's worth of asynchronous writes: a stalled terminal never blocks the front.
 */
import { pino, destination, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { LogLevel } from '../options/table.js';

export type Log = Logger;

/** An asynchronous writer to stdout or stderr. `write` returns false when the caller should wait for `drain`. */
export type LineWriter = ReturnType<typeof destination>;

export function lineWriter(fd: 1 | 2): LineWriter {
  return destination({ fd, sync: false, minLength: 0 });
}

export function createLog(format: 'text' | 'json', level: LogLevel, writer: LineWriter): Log {
  if (format === 'json') return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, writer);
  const colorize = process.stderr.isTTY === true && process.env['NO_COLOR'] === undefined;
  const stream = pretty({
    colorize,
    translateTime: 'SYS:HH:MM:ss.l',
    singleLine: true,
    destination: writer,
  });
  return pino({ level, base: null }, stream);
}
