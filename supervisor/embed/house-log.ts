/** The log of the models of a program: to the logger of each function, else nothing but warnings that no error tells. */
import { describeThrown } from '../../protocol/errors.js';
import type { Log } from '../observe/log.js';

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
