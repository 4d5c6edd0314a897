/**
 * Resolves options: the only code that checks a value, and that says which source takes precedence. Each reader (flags,
 * environment, config files, programs, an app's `config`) delivers raw values as an `OptionSource`, of which nothing is
 * checked. Every value is checked before anything starts, except those of the app's `config`, which is known only after a
 * worker has loaded it: so explicit values keep their sources.
 */
import { inspect } from 'node:util';
import { ServeError, configError } from '../../protocol/errors.js';
import { didYouMean } from '../../protocol/text/sentences.js';
import type { NamedLimit } from '../machine/limit-timer.js';
import type { FullModelRef } from './model-name.js';
import {
  OPTIONS,
  OPTION_NAMES,
  OPTION_SCOPES,
  envName,
  isDuration,
  type ModelOptions,
  type OptionName,
  type OptionScope,
  type OptionSpec,
  type Options,
} from './table.js';
import { NotAllowed } from './units.js';

export type { ModelOptions, Options, ServerOptions } from './table.js';

/** Raw values of one source, by option name. `where` describes the source of a value in errors. */
export interface OptionSource {
  readonly values: Readonly<Record<string, unknown>>;
  where(name: string): string;
  /** Further names that this source accepts, for the hint of a mistyped name. */
  readonly alsoTakes?: readonly string[];
  /** Numbers as durations are ms. Only programs may give them: a person who writes 30 into a file may mean seconds. */
  readonly numbersAreMs?: boolean;
}

export const NO_OPTIONS: OptionSource = { values: {}, where: (name) => name };

/** Settings of one model of the store. A registration's own values take precedence. */
export interface ModelSetting {
  readonly source: OptionSource;
  /** Least and most workers; null if not set. */
  readonly min: number | null;
  readonly max: number | null;
}

/** The options of one model before its app is loaded. */
export interface ResolvedModelOptions {
  readonly options: ModelOptions;
  /** Options that the operator set, with their sources; these take precedence over the app's `config`. */
  readonly explicit: ReadonlyMap<OptionName, string>;
  /** Names of options that were set for this model, and not for all models of the server; left out: none. */
  readonly own?: ReadonlySet<OptionName>;
}

/** All options: the server's, and those of a model without options of its own. */
export interface ResolvedOptions extends ResolvedModelOptions {
  readonly options: Options;
  /** Settings of single models of the store, null if a model has none; left out: there are none. */
  readonly settingOf?: (ref: FullModelRef) => ModelSetting | null;
}

/** The source of an option's value, for errors: `banana.json: workers`; its flag if it was not set. */
export function sourceNameOf({ explicit }: Pick<ResolvedModelOptions, 'explicit'>, name: OptionName): string {
  return explicit.get(name) ?? OPTIONS[name].flag;
}

/** Earlier sources take precedence. @throws SERVE_CONFIG with option, value, source and the allowed values */
export function resolveOptions(sources: readonly OptionSource[]): ResolvedOptions {
  const given = [...sources].reverse().flatMap((source) => checkedValues(source, OPTION_SCOPES));
  const defaults = Object.fromEntries(OPTION_NAMES.map((name) => [name, OPTIONS[name].default]));
  const resolved = laidOver({ options: defaults as unknown as Options, explicit: new Map() }, given);
  // With --watch a failed app starts again when its files change. The app's `config` may still set another limit.
  return resolved.options.watch ? withDefaults(resolved, { restartLimit: 0 }) : resolved;
}

/**
 * The options of a model with options of its own (`own`), laid over the server's. Its device options replace those of the
 * server that contradict them. `place`: source of the model, for errors. @throws SERVE_CONFIG
 */
export function resolveModelOptions(
  server: ResolvedModelOptions,
  own: OptionSource,
  place: string,
): ResolvedModelOptions {
  const given = checkedValues(own, ['operator', 'model']);
  const names = given.map(({ name }) => name);
  const excluded = excludedBy(given, server.options).map((name) => [name, null] as const);
  const below = { ...server, options: { ...server.options, ...Object.fromEntries(excluded) } };
  return { ...laidOver(below, given, `${place}: `), own: new Set([...(server.own ?? []), ...names]) };
}

/** Adds the `config` of the app at `path` where the operator set nothing. @throws SERVE_CONFIG */
export function withAppConfig(
  resolved: ResolvedModelOptions,
  config: Readonly<Record<string, unknown>>,
  path: string,
): ModelOptions {
  const given = checkedValues({ values: config, where: (name) => `${path}: config.${name}` }, ['model']);
  return withDefaults(resolved, valuesOf(given)).options;
}

/** Other defaults: values of options that the operator did not set. */
export function withDefaults<R extends ResolvedModelOptions>(resolved: R, defaults: Partial<Options>): R {
  const unset = Object.entries(defaults).filter(([name]) => !resolved.explicit.has(name as OptionName));
  return { ...resolved, options: Object.freeze({ ...resolved.options, ...Object.fromEntries(unset) }) };
}

/** Makes what is set for all models of a server the own options of its only model. */
export function asOnlyModel<R extends ResolvedModelOptions>(resolved: R): R {
  return { ...resolved, own: new Set(resolved.explicit.keys()) };
}

/** Lays values over `below`, the last of several of an option. `place` begins the message. @throws SERVE_CONFIG */
function laidOver<R extends ResolvedModelOptions>(below: R, given: readonly CheckedValue[], place = ''): R {
  const options = Object.freeze({ ...below.options, ...valuesOf(given) });
  checkTogether(options, place);
  const explicit = new Map([...below.explicit, ...given.map(({ name, where }) => [name, where] as const)]);
  return { ...below, options, explicit };
}

/** Options of the server on devices and numbers of workers that contradict those of a model. */
function excludedBy(given: readonly CheckedValue[], server: ModelOptions): OptionName[] {
  const values = valuesOf(given);
  const has = (name: OptionName): boolean => name in values;
  const wantsGpus = has('workersPerGpu') || (has('gpus') && values.gpus !== 'none');
  if (wantsGpus || SCALING.some(has)) return ['workers'];
  if (!has('workers')) return [];
  return [...SCALING, 'workersPerGpu', ...(server.gpus === 'none' ? [] : (['gpus'] as const))];
}

/** A model for which one of these is given scales by itself. */
const SCALING = ['minWorkers', 'maxWorkers', 'idleTimeout'] as const satisfies readonly OptionName[];

/** Whether the model's number of workers follows its calls. */
export function scalesItself(options: Pick<ModelOptions, (typeof SCALING)[number]>): boolean {
  return SCALING.some((name) => options[name] !== null);
}

interface CheckedValue {
  readonly name: OptionName;
  readonly value: unknown;
  readonly where: string;
}

function valuesOf(given: readonly CheckedValue[]): Partial<Options> {
  return Object.fromEntries(given.map(({ name, value }) => [name, value]));
}

/** Checks the values of a source that may set options of `scopes`. @throws SERVE_CONFIG */
function checkedValues(source: OptionSource, scopes: readonly OptionScope[]): CheckedValue[] {
  return Object.entries(source.values).flatMap(([given, raw]) => {
    if (raw === undefined) return [];
    const where = source.where(given);
    const name = knownName(given, where, source, scopes);
    if (source.numbersAreMs !== true) assertUnit(name, raw, where);
    return [{ name, value: parseOption(name, raw, where), where }];
  });
}

/** @throws SERVE_CONFIG if there is no such option, or if this source may not set it */
function knownName(
  name: string,
  where: string,
  { alsoTakes = [] }: OptionSource,
  scopes: readonly OptionScope[],
): OptionName {
  if (!Object.hasOwn(OPTIONS, name)) {
    const known = OPTION_NAMES.filter((option) => scopes.includes(OPTIONS[option].scope));
    const names = [...alsoTakes, ...known];
    const hint = didYouMean(name, names, ' Did') || ` Known options: ${names.join(', ')}.`;
    throw configError(`${where}: there is no such option.${hint}`);
  }
  const known = name as OptionName;
  const { scope, flag } = OPTIONS[known];
  if (scopes.includes(scope)) return known;
  const whose =
    scope === 'server' ? 'the server, not to a model' : 'the operator of the server, not to the app';
  throw configError(`${where}: this option belongs to ${whose}. Set ${flag} or ${envName(known)} instead.`);
}

export function parseOption(name: OptionName, raw: unknown, where: string): unknown {
  const { parse }: OptionSpec = OPTIONS[name];
  return checkedValue(where, raw, parse, isSecret(name));
}

/** Reads a value; the error of one that is not allowed names its source. @throws SERVE_CONFIG */
export function checkedValue<Raw, T>(where: string, raw: Raw, read: (raw: Raw) => T, isHidden = false): T {
  try {
    return read(raw);
  } catch (cause) {
    if (!(cause instanceof NotAllowed)) throw cause;
    if (isHidden) throw configError(`${where}: this value is not allowed; give ${cause.message}.`);
    throw notAllowed(where, raw, cause.message);
  }
}

/** 0 is the same in every unit. @throws SERVE_CONFIG */
function assertUnit(name: OptionName, raw: unknown, where: string): void {
  if (!isDuration(name) || typeof raw !== 'number' || raw <= 0) return;
  throw configError(
    `${where}: ${raw} has no unit; write "${raw}s" for seconds or "${raw}ms" for milliseconds.`,
  );
}

export function isSecret(name: OptionName): boolean {
  return OPTIONS[name].secret === true;
}

/** The error for a value that is not allowed. `raw` may be anything that a program can pass: a BigInt, a cycle, a function. */
export function notAllowed(where: string, raw: unknown, allowed: string): ServeError {
  const shown = typeof raw === 'string' ? JSON.stringify(raw) : inspect(raw, ON_ONE_LINE);
  return configError(`${where}: ${shown} is not allowed; give ${allowed}.`);
}

const ON_ONE_LINE = { depth: 1, breakLength: Infinity, compact: true, customInspect: false };

/** Refuses options on devices and numbers of workers that contradict each other. `place` is the start of the message. */
function checkTogether(options: ModelOptions, place: string): void {
  const { workers, workersPerGpu, gpus, minWorkers, maxWorkers } = options;
  if (minWorkers !== null && maxWorkers !== null && maxWorkers < minWorkers)
    throw configError(
      `${place}--max-workers (${maxWorkers}) cannot be less than --min-workers (${minWorkers}).`,
    );
  if (workers === null) return;
  const [own] = SCALING.filter((name) => options[name] !== null);
  if (own !== undefined) {
    throw configError(
      `${place}--workers and ${OPTIONS[own].flag} exclude each other: --workers is a fixed number, ${OPTIONS[own].flag} lets the number follow the calls. Give --max-workers instead of --workers.`,
    );
  }
  if (workersPerGpu !== null) {
    throw configError(
      `${place}--workers and --workers-per-gpu exclude each other: --workers counts processes on a machine without GPUs, --workers-per-gpu counts them on each GPU. Give one.`,
    );
  }
  if (gpus !== null && gpus !== 'none') {
    throw configError(
      `${place}--workers is for machines without GPUs; with --gpus, give --workers-per-gpu instead.`,
    );
  }
}

/** Parameters of the management API, by the option that they set. */
export const MANAGEMENT_NAMES = {
  minWorkers: 'min_worker',
  maxWorkers: 'max_worker',
  idleTimeout: 'idle_timeout',
  targetWait: 'target_wait',
  standby: 'standby',
  batchSize: 'batch_size',
  maxBatchDelay: 'max_batch_delay',
  runTimeout: 'response_timeout',
  initTimeout: 'startup_timeout',
} as const;

/** Stands for an init timeout of 0, within which no worker can start. */
export const SHORTEST_START_MS = 1;

/** Names the limit by its management parameter if that set it, else by its flag: clients should not see the server's files. */
export function limitOf(
  name: 'runTimeout' | 'initTimeout',
  ms: number,
  { explicit }: Pick<ResolvedModelOptions, 'explicit'>,
): NamedLimit {
  const managed = MANAGEMENT_NAMES[name];
  return { ms, name: explicit.get(name) === managed ? managed : OPTIONS[name].flag };
}
