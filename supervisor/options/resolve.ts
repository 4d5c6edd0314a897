/**
 * Resolves options: flag > environment > config file > the app's `config` > default. Each value is checked before anything
 * starts. The app's `config` is known only after a worker has loaded it, so explicit values keep their sources.
 */
import { inspect } from 'node:util';
import { ServeError, configError } from '../../protocol/errors.js';
import type { FullModelRef } from './model-name.js';
import type { OptionScope } from './option-spec.js';
import { suggest } from '../../protocol/text/suggest.js';
import {
  OPTIONS,
  OPTION_NAMES,
  envName,
  isDuration,
  type ModelOptions,
  type OptionName,
  type OptionValues,
  type ServerOptions,
} from './table.js';
import { NotAllowed } from './units.js';

export type { ModelOptions, ServerOptions } from './table.js';

/** All options: the server's, and those of a model without options of its own. */
export type Options = ServerOptions & ModelOptions;

/** Raw values of one source, by option name. `where` describes the source of a value in errors. */
export interface OptionSource {
  readonly values: Readonly<Record<string, unknown>>;
  where(name: string): string;
  /** Further names that this source accepts, for the hint of a mistyped name. */
  readonly alsoTakes?: readonly string[];
  /** Numbers as durations are ms. Only programs may give them: a person who writes 30 into a file may mean seconds. */
  readonly numbersAreMs?: true;
}

/** Settings of one model of the store. A registration's own values take precedence. */
export interface ModelSetting {
  readonly source: OptionSource;
  /** Least and most workers; null if not set. */
  readonly min: number | null;
  readonly max: number | null;
}

export interface ModelSettings {
  /** Null if the model has none. */
  of(ref: FullModelRef): ModelSetting | null;
}

export interface ResolvedOptions {
  readonly options: Options;
  /** Options that the operator set, with their sources; these take precedence over an app's `config`. */
  readonly explicit: ReadonlyMap<OptionName, string>;
  /** Settings of single models of the store; undefined if there are none. */
  readonly modelSettings?: ModelSettings;
}

/** The source of an option's value, for errors: `banana.json: workers`; its flag if it was not set. */
export function sourceNameOf({ explicit }: ResolvedOptions, name: OptionName): string {
  return explicit.get(name) ?? OPTIONS[name].flag;
}

/** The options of one model before its app is loaded. */
export interface ResolvedModelOptions {
  readonly options: ModelOptions;
  /** Options that the operator set, with their sources; these take precedence over the app's `config`. */
  readonly explicit: ReadonlyMap<OptionName, string>;
  /** Names of options that were set for this model, and not for all models of the server; left out: none. */
  readonly own?: ReadonlySet<OptionName>;
}

/** Earlier sources take precedence. @throws SERVE_CONFIG with option, value, source and the allowed values */
export function resolveOptions(sources: readonly OptionSource[]): ResolvedOptions {
  const explicit = new Map<OptionName, string>();
  const values: Record<string, unknown> = {};
  for (const name of OPTION_NAMES) values[name] = OPTIONS[name].default;
  for (const source of [...sources].reverse()) {
    for (const [name, value] of parsedValues(source, EVERY_SCOPE)) {
      values[name] = value;
      explicit.set(name, source.where(name));
    }
  }
  // With --watch a failed app starts again when its files change. The app's `config` may still set another limit.
  if (values['watch'] === true && !explicit.has('restartLimit')) values['restartLimit'] = 0;
  const options = Object.freeze(values as unknown as OptionValues);
  checkTogether(options);
  return { options, explicit };
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
  const given = new Map(parsedValues(own, ['operator', 'model']));
  const values: Record<string, unknown> = { ...server.options };
  for (const name of excludedBy(given, server.options)) values[name] = null;
  for (const [name, value] of given) values[name] = value;
  const options = Object.freeze(values as unknown as OptionValues);
  checkTogether(options, `${place}: `);
  const places = [...given.keys()].map((name) => [name, own.where(name)] as const);
  const ofModel = new Set([...(server.own ?? []), ...given.keys()]);
  return { options, explicit: new Map([...server.explicit, ...places]), own: ofModel };
}

/** Makes what is set for all models of a server the own options of its only model. */
export function asOnlyModel<R extends ResolvedModelOptions>(resolved: R): R {
  return { ...resolved, own: new Set(resolved.explicit.keys()) };
}

/** Options of the server on devices and numbers of workers that contradict those of a model. */
function excludedBy(given: ReadonlyMap<OptionName, unknown>, server: ModelOptions): OptionName[] {
  const wantsGpus = given.has('workersPerGpu') || (given.has('gpus') && given.get('gpus') !== 'none');
  if (wantsGpus || SCALING.some((name) => given.has(name))) return ['workers'];
  if (!given.has('workers')) return [];
  return [...SCALING, 'workersPerGpu', ...(server.gpus === 'none' ? [] : (['gpus'] as const))];
}

/** A model for which one of these is given scales by itself. */
const SCALING = ['minWorkers', 'maxWorkers', 'idleTimeout'] as const satisfies readonly OptionName[];

/** Whether the model's number of workers follows its calls. */
export function scalesItself(options: Pick<ModelOptions, (typeof SCALING)[number]>): boolean {
  return SCALING.some((name) => options[name] !== null);
}

/** Adds the `config` of the app at `path` where the operator set nothing. @throws SERVE_CONFIG */
export function withAppConfig(
  resolved: ResolvedModelOptions,
  config: Readonly<Record<string, unknown>>,
  path: string,
): ModelOptions {
  const source: OptionSource = { values: config, where: (name) => `${path}: config.${name}` };
  const values: Record<string, unknown> = { ...resolved.options };
  for (const [name, value] of parsedValues(source, ['model'])) {
    if (!resolved.explicit.has(name)) values[name] = value;
  }
  return Object.freeze(values as unknown as OptionValues);
}

const EVERY_SCOPE: readonly OptionScope[] = ['server', 'operator', 'model'];

/** Parses the values of a source that may set options of `scopes`. @throws SERVE_CONFIG */
function parsedValues(source: OptionSource, scopes: readonly OptionScope[]): [OptionName, unknown][] {
  return Object.entries(source.values).flatMap(([name, raw]): [OptionName, unknown][] => {
    if (raw === undefined) return [];
    const known = knownName(name, source, scopes);
    const where = source.where(name);
    if (!scopes.includes(OPTIONS[known].scope)) throw misplaced(known, where);
    assertUnit(known, raw, source);
    return [[known, parseOption(known, raw, where)]];
  });
}

/** Error for an option that its source may not set: an app's `config`, or one of several models. */
function misplaced(name: OptionName, where: string): ServeError {
  const whose =
    OPTIONS[name].scope === 'server'
      ? 'the server, not to a model'
      : 'the operator of the server, not to the app';
  return configError(
    `${where}: this option belongs to ${whose}. Set ${OPTIONS[name].flag} or ${envName(name)} instead.`,
  );
}

/** Reads the BANANA_* variables (and PORT) as a source, with warnings for ignored ones. */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): {
  source: OptionSource;
  warnings: string[];
} {
  const values: Record<string, unknown> = {};
  const from: Record<string, string> = {};
  const warnings: string[] = [];
  const take = (name: OptionName, variable: string): void => {
    const raw = env[variable];
    if (raw === '' && isSecret(name)) warnings.push(`${variable} is empty, which counts as not set`);
    if (raw === undefined || raw === '' || values[name] !== undefined) return;
    // Kubernetes sets NAME_PORT=tcp://… for every service in a namespace; one called "banana" would collide.
    if (/^(tcp|udp):\/\//.test(raw) && !isSecret(name))
      warnings.push(`${variable}=${raw} looks like a variable that Kubernetes sets, and is ignored`);
    else [values[name], from[name]] = [raw, variable];
  };
  for (const name of OPTION_NAMES) take(name, envName(name));
  take('port', 'PORT');
  warnings.push(...misspelledVariables(env));
  return { source: { values, where: (name) => from[name] ?? name }, warnings };
}

export function parseOption(name: OptionName, raw: unknown, where: string): unknown {
  try {
    return OPTIONS[name].parse(raw);
  } catch (cause) {
    if (!(cause instanceof NotAllowed)) throw cause;
    if (isSecret(name)) throw configError(`${where}: this value is not allowed; give ${cause.message}.`);
    throw notAllowed(where, raw, cause.message);
  }
}

/** 0 is the same in every unit. @throws SERVE_CONFIG */
function assertUnit(name: OptionName, raw: unknown, source: OptionSource): void {
  if (source.numbersAreMs || !isDuration(name) || typeof raw !== 'number' || raw <= 0) return;
  throw configError(
    `${source.where(name)}: ${raw} has no unit; write "${raw}s" for seconds or "${raw}ms" for milliseconds.`,
  );
}

function isSecret(name: OptionName): boolean {
  const { secret = false }: { secret?: boolean } = OPTIONS[name];
  return secret;
}

/** The error for a value that is not allowed. `raw` may be anything that a program can pass: a BigInt, a cycle, a function. */
export function notAllowed(where: string, raw: unknown, allowed: string): ServeError {
  const shown = typeof raw === 'string' ? JSON.stringify(raw) : inspect(raw, ON_ONE_LINE);
  return configError(`${where}: ${shown} is not allowed; give ${allowed}.`);
}

const ON_ONE_LINE = { depth: 1, breakLength: Infinity, compact: true, customInspect: false };

function knownName(name: string, source: OptionSource, scopes: readonly OptionScope[]): OptionName {
  if (Object.hasOwn(OPTIONS, name)) return name as OptionName;
  const known = OPTION_NAMES.filter((option) => scopes.includes(OPTIONS[option].scope));
  const names = [...(source.alsoTakes ?? []), ...known];
  const close = suggest(name, names);
  const hint = close === null ? `Known options: ${names.join(', ')}.` : `Did you mean ${close}?`;
  throw configError(`${source.where(name)}: there is no such option. ${hint}`);
}

/** Refuses options on devices and numbers of workers that contradict each other. `place` is the start of the message. */
function checkTogether(options: ModelOptions, place = ''): void {
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

/** Variables that Kubernetes sets for a service called "banana", besides BANANA_PORT (see `readEnvironment`). */
const OF_KUBERNETES = /^BANANA_(?:SERVICE_(?:HOST|PORT)|PORT_\d+_)/;

function misspelledVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  // Compared without the prefix, which would make any two names look alike.
  const prefix = 'BANANA_';
  const known = OPTION_NAMES.map((name) => envName(name).slice(prefix.length));
  return Object.keys(env)
    .filter((variable) => variable.startsWith(prefix) && !known.includes(variable.slice(prefix.length)))
    .filter((variable) => !OF_KUBERNETES.test(variable))
    .flatMap((variable) => {
      const close = suggest(variable.slice(prefix.length), known);
      return close === null
        ? []
        : [`${variable} is not an option of banana-serve; did you mean ${prefix}${close}?`];
    });
}
