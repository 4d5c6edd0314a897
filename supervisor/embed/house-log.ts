/** The log of the models of a program: the loggers that it has given, else nothing but warnings that no error tells. */
import { describeThrown } from '../../protocol/errors.js';
import type { Log } from '../observe/log.js';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** A logger as pino has it: the fields first, or a text alone. */
export type GivenLog = Readonly<
  Record<(typeof LEVELS)[number], (fields: object | string, text?: string) => void>
>;

export class HouseLog {
  /** The loggers of the functions, each with the number of those that have given it. */
  readonly #given = new Map<GivenLog, number>();
  readonly log: Log;

  constructor() {
    const methods = LEVELS.map((level) => [
      level,
      (fields: object | string, text?: string) => this.#write(level, fields, text),
    ]);
    const isLevelEnabled = (): boolean => this.#given.size > 0;
    this.log = { ...(Object.fromEntries(methods) as unknown as Log), isLevelEnabled };
  }

  add(log: GivenLog): void {
    this.#given.set(log, (this.#given.get(log) ?? 0) + 1);
  }

  remove(log: GivenLog): void {
    const times = (this.#given.get(log) ?? 0) - 1;
    if (times > 0) this.#given.set(log, times);
    else this.#given.delete(log);
  }

  #write(level: keyof GivenLog, fields: object | string, text: string | undefined): void {
    for (const log of [...this.#given.keys()]) {
      try {
        if (text === undefined) log[level](fields);
        else log[level](fields, text);
      } catch (thrown) {
        this.#given.delete(log); // its failure is no failure of the models
        process.stderr.write(
          `banana-serve: a logger gets no more lines, it threw: ${describeThrown(thrown).message}\n`,
        );
      }
    }
    // A line without fields is about no worker and no call, whose errors tell the rest.
    if (this.#given.size === 0 && level === 'warn' && typeof fields === 'string')
      process.stderr.write(`banana-serve: ${fields}\n`);
  }
}

/** @returns whether it has the methods of a logger */
export function isLog(value: unknown): value is GivenLog {
  return (
    typeof value === 'object' &&
    value !== null &&
    LEVELS.every((level) => typeof (value as GivenLog)[level] === 'function')
  );
}
