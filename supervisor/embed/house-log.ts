/** The log of the models of a program: the loggers that it has given, else nothing but warnings that no error tells. */
import type { Log } from '../observe/log.js';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** A logger as pino has it: the fields first, or a text alone. */
export type GivenLog = Readonly<
  Record<(typeof LEVELS)[number], (fields: object | string, text?: string) => void>
>;

export class HouseLog {
  /** The loggers of the functions, each once. */
  readonly #given = new Set<GivenLog>();
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
    this.#given.add(log);
  }

  #write(level: keyof GivenLog, fields: object | string, text: string | undefined): void {
    for (const log of this.#given) {
      if (text === undefined) log[level](fields);
      else log[level](fields, text);
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
