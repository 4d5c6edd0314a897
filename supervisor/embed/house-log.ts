/**
 * The log and the output of the models of a program. The log goes to the logger of each function, else nothing but warnings
 * that no error tells.
 */
import { describeThrown } from '../../protocol/errors.js';
import type { Log } from '../observe/log.js';
import type { Readable, Writable } from 'node:stream';
import { LineSplitter } from '../observe/line-splitter.js';
import type { OutputRelay } from '../observe/output-relay.js';
import type { PrintSource, StreamName } from '../observe/prints.js';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];

/** A logger as pino has it: the fields first, or a text alone. */
export type GivenLog = Readonly<Record<Level, (fields: object | string, text?: string) => void>>;

/** A function that has a logger; null if it has none, or it threw. */
interface Logged {
  log: GivenLog | null;
}

/** Makes the log of a house. A line that names its model goes to that one's logger, any other to all loggers once. */
export function houseLog(byModel: ReadonlyMap<string, Logged>): Log {
  const write = (level: Level, fields: object | string, text?: string): void => {
    const { model, worker } = (typeof fields === 'string' ? named(fields) : fields) as LineFields;
    const all = model === undefined ? [...byModel.values()] : [byModel.get(model)];
    const logs = new Set(all.map((one) => one?.log ?? null).filter((log) => log !== null));
    for (const log of logs) {
      try {
        if (text === undefined) log[level](fields);
        else log[level](fields, text);
      } catch (thrown) {
        for (const one of byModel.values()) if (one.log === log) one.log = null; // its failure is no failure of the models
        warn(`a logger gets no more lines, it threw: ${describeThrown(thrown).message}`);
      }
    }
    // The errors of calls and starts tell what happens to workers.
    if (logs.size === 0 && level === 'warn' && worker === undefined) warn(text ?? (fields as string));
  };
  const methods = LEVELS.map((level) => [
    level,
    (fields: object | string, text?: string) => write(level, fields, text),
  ]);
  return {
    ...(Object.fromEntries(methods) as unknown as Log),
    isLevelEnabled: () => [...byModel.values()].some(({ log }) => log !== null),
  };
}

interface LineFields {
  readonly model?: string | undefined;
  readonly worker?: number;
}

/** The model of a line that has no fields, because scripts look for exactly that line of Multi Model Server. */
function named(text: string): LineFields {
  return { model: /^Model (\S+) (?:loaded|unregistered)\.$/.exec(text)?.[1] };
}

function warn(text: string): void {
  process.stderr.write(`banana-serve: ${text}\n`);
}

/** @returns whether it has the methods of a logger */
export function isLog(value: unknown): value is GivenLog {
  return (
    typeof value === 'object' &&
    value !== null &&
    LEVELS.every((level) => typeof (value as GivenLog)[level] === 'function')
  );
}

export type Prints = 'ignore' | Writable | ((line: string, stream: StreamName) => void);

/** Passes on what the apps of functions print: to a stream with the model's name, to a function line by line, or nowhere. */
export class FunctionPrints implements Pick<OutputRelay, 'attach'> {
  readonly #placeOf: (model: string) => Prints;

  /** `placeOf` returns where the output of the model of this name goes. */
  constructor(placeOf: (model: string) => Prints) {
    this.#placeOf = placeOf;
  }

  attach(stream: Readable, name: StreamName, { label, mark }: PrintSource): void {
    const model = label();
    const place = this.#placeOf(model);
    if (place === 'ignore') return void stream.resume();
    const write =
      typeof place === 'function' ? toFunction(place, name) : toStream(place, `[${model}] `, stream);
    const lines = new LineSplitter(mark, false, (text) => write(text.toString()));
    stream.on('data', (chunk: Buffer) => lines.push(chunk));
    stream.on('error', () => lines.end());
    stream.on('close', () => lines.end());
  }
}

function toFunction(place: Extract<Prints, (...args: never[]) => void>, name: StreamName) {
  return (text: string): void => {
    for (const line of linesOf(text)) place(line, name);
  };
}

/** A place that takes no more makes the app wait; one that has ended takes nothing. */
function toStream(place: Writable, prefix: string, stream: Readable) {
  return (text: string): void => {
    if (!place.writable) return;
    const lines = linesOf(text).map((line) => `${prefix}${line}\n`);
    if (!place.write(lines.join(''))) waitFor(place, stream);
  };
}

/** The outputs that wait for a place. */
const waiting = new WeakMap<Writable, Set<Readable>>();

function waitFor(place: Writable, stream: Readable): void {
  stream.pause();
  const known = waiting.get(place);
  if (known !== undefined) return void known.add(stream);
  const streams = new Set([stream]);
  waiting.set(place, streams);
  const goOn = (): void => {
    for (const event of ['drain', 'close']) place.off(event, goOn);
    waiting.delete(place);
    for (const one of streams) one.resume();
  };
  for (const event of ['drain', 'close']) place.on(event, goOn);
}

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  return (lines.at(-1) === '' ? lines.slice(0, -1) : lines).map((line) => line.replace(/\r$/, ''));
}
