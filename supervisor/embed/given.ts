/** Reads what a program passes to `supervise()`: nothing starts if anything of it is wrong. */
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { ServeError, configError } from '../../protocol/errors.js';
import type { ProgramModelOptions, ProgramOptions } from '../../protocol/option-types.js';
import { isObject } from '../options/read-objects.js';
import { notAllowed, type OptionSource } from '../options/resolve.js';
import { OPTIONS, type OptionName } from '../options/table.js';
import { isLog, type GivenLog, type Prints } from './house-log.js';

/** Options of all functions of a program; the first of them decides. */
const HOUSE_OPTIONS = [
  'spawnConcurrency',
  'spares',
  'memoryBudget',
  'gpuMemoryBudget',
  'withholdEnv',
  'queueBytes',
  'maxOutput',
  'drainTimeout',
] as const satisfies readonly OptionName[];

/**
 * Options of `supervise()`: those of a model, named as in docs/options.md, and a few that all functions of the program share,
 * which the first one decides. Durations are ms, or have a unit.
 * @example
 * const options: SuperviseOptions = { maxWorkers: 2, runTimeout: '10s', prints: 'ignore' };
 */
export interface SuperviseOptions
  extends ProgramModelOptions, Pick<ProgramOptions, (typeof HOUSE_OPTIONS)[number]> {
  /** Folder of relative paths; default: the current folder. */
  readonly cwd?: string | undefined;
  /** A logger such as pino's for what happens to workers; default: none. */
  readonly log?: GivenLog | undefined;
  /** Gets the output of the app, line by line; default: to the program's stderr, with the name of the model. */
  readonly prints?: Prints | undefined;
}

export interface GivenFunction {
  readonly app: string;
  readonly cwd: string;
  readonly log: GivenLog | null;
  readonly prints: Prints | null;
  readonly model: OptionSource;
  readonly house: OptionSource;
}

/** @throws SERVE_CONFIG */
export function readGiven(app: unknown, options: unknown): GivenFunction {
  if (!isObject(options)) throw notAllowed('supervise(app, options)', options, 'an object of options');
  const { cwd = process.cwd(), log, prints, ...values } = options;
  if (typeof cwd !== 'string') throw notAllowed(where('cwd'), cwd, 'the path of a folder');
  if (log !== undefined && !isLog(log))
    throw notAllowed(where('log'), log, 'a logger with debug, info, warn and error');
  if (prints !== undefined && !isPlace(prints))
    throw notAllowed(
      where('prints'),
      prints,
      "'ignore', a writable stream, or a function of line and stream",
    );
  const isOfHouse = (name: string): boolean => (HOUSE_OPTIONS as readonly string[]).includes(name);
  const names = Object.keys(values);
  for (const name of names) if (!isOfHouse(name)) refuseServers(name);
  const source = (chosen: readonly string[]): OptionSource => ({
    values: Object.fromEntries(chosen.map((name) => [name, values[name]])),
    where,
    alsoTakes: ['cwd', 'log', 'prints', ...HOUSE_OPTIONS],
    numbersAreMs: true,
  });
  return {
    app: pathOf(app),
    cwd,
    log: log ?? null,
    prints: prints ?? null,
    model: source(names.filter((name) => !isOfHouse(name))),
    house: source(names.filter(isOfHouse)),
  };
}

function where(name: string): string {
  return `supervise({ ${name} })`;
}

/** @throws SERVE_CONFIG */
function pathOf(app: unknown): string {
  if (typeof app === 'string' && app !== '' && !app.startsWith('file:')) return app;
  try {
    if (typeof app === 'string' || app instanceof URL) return fileURLToPath(app);
  } catch {
    // told below
  }
  throw notAllowed('supervise(app)', app, "the path of an app, such as './embed.ts', or its file: URL");
}

function isPlace(value: unknown): value is Prints {
  return value === 'ignore' || typeof value === 'function' || value instanceof Writable;
}

/** @throws SERVE_CONFIG for an option that only a server has */
function refuseServers(name: string): void {
  if (!Object.hasOwn(OPTIONS, name) || OPTIONS[name as OptionName].scope !== 'server') return;
  throw configError(`${where(name)}: a function has no listener and no pages; give this option to serve().`);
}

/** @throws SERVE_CONFIG if a function asks for another value than the one that began */
export function refuseOther(first: OptionSource, other: OptionSource): void {
  for (const [name, value] of Object.entries(other.values)) {
    if (value === undefined || first.values[name] === value) continue;
    throw new ServeError(
      'SERVE_CONFIG',
      `${where(name)}: all functions of a program share this option, and the first one has decided it; give it there.`,
    );
  }
}
