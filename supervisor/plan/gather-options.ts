/**
 * Reads the options of a server from all their sources, and the models that they name. In order of precedence: variables
 * MMS_<KEY> if config.properties enables them, the command line or the program, BANANA_<OPTION>, config.properties,
 * banana.json, defaults. A server that replaces Multi Model Server has other defaults.
 */
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configError } from '../../protocol/errors.js';
import { readEnvironment } from '../options/environment.js';
import {
  readConfigFile,
  readModelFlags,
  readServeOptions,
  type ModelEntry,
} from '../options/read-objects.js';
import {
  NO_OPTIONS,
  resolveOptions,
  sourceNameOf,
  withDefaults,
  type OptionSource,
  type Options,
  type ResolvedOptions,
} from '../options/resolve.js';
import { IN_MEMORY, SECRET_PATTERN } from '../options/value-forms.js';
import { holdsApp, nearbyHint } from './app-path.js';
import type { ServeInternals, ServeOptions } from './given-options.js';
import { WORKERS, planSageMaker, strayPorts } from './sagemaker.js';

/** The options and the models that were given to a server. */
export interface Gathered {
  /** Path of the app that answers on `/`; null if not given. */
  readonly app: string | null;
  readonly appPlace: string;
  readonly workerCommand: readonly string[] | null;
  /** The other models, which have names. */
  readonly entries: readonly ModelEntry[];
  /** No app is named, and a model store, models of a store or a config.properties is given. */
  readonly isMmsMode: boolean;
  /** Models of the store are registered by the whole paths of their folders, as SageMaker does. */
  readonly hasWholeUrls: boolean;
  /** Workers that the app starts with, on a GPU or not, unless its own options say how many; null: as usual. */
  readonly firstWorkers: number | null;
  /** Folder of relative paths. */
  readonly cwd: string;
  readonly resolved: ResolvedOptions;
  /** Aborts the start. */
  readonly stop: AbortSignal | undefined;
}

/** The warnings are logged at the start. Rejects with SERVE_CONFIG. */
export async function gatherOptions(
  given: ServeOptions,
  internals: ServeInternals,
): Promise<Gathered & { readonly warnings: readonly string[] }> {
  const { isAlone = false, isSageMaker = false, appPlace = '', modelFlags = [], stop } = internals;
  const program = readServeOptions(given, appPlace.startsWith('served') ? 'run' : 'serve');
  const { cwd, workerCommand = null } = program;
  const environment = readEnvironment(process.env);
  const file = readConfigFile(cwd);
  const named = program.app ?? (workerCommand === null ? file.app : undefined) ?? null;
  const above = [internals.flags ?? program.source, environment.source];
  const platform = isSageMaker
    ? planSageMaker(named, resolveOptions([...above, file.source]), process.env)
    : { app: named, source: NO_OPTIONS, hasWholeUrls: false };
  const { app, hasWholeUrls } = platform;
  const below = [file.source, platform.source];
  const isAppNamed = app !== null || workerCommand !== null;
  const entries = isAlone ? [] : [...readModelFlags(modelFlags), ...program.models, ...file.models];
  const own = resolveOptions([...above, ...below]);
  const { resolved, hasMmsConfig, warnings } = isAlone
    ? { resolved: alone(own), hasMmsConfig: false, warnings: [] }
    : await withMmsSources(above, below, own, cwd, isAppNamed || entries.length > 0);
  const served = servedAs(resolved, isAppNamed, hasMmsConfig);
  const firstWorkers = own.explicit.get('defaultWorkers') === WORKERS ? own.options.defaultWorkers : null;
  const strays = strayPorts(served.resolved.options, process.env);
  return {
    ...served,
    ...{ app, appPlace, workerCommand, entries, hasWholeUrls, firstWorkers, cwd, stop },
    warnings: [...(internals.warnings ?? []), ...environment.warnings, ...warnings, ...strays],
  };
}

/** Without the options that add models besides the app, or that share a folder with another server. */
function alone(own: ResolvedOptions): ResolvedOptions {
  const without = { modelStore: null, models: null, managementPort: null, jobs: IN_MEMORY };
  return { ...own, options: { ...own.options, ...without } };
}

/**
 * Adds config.properties, and variables of Multi Model Server. `above`: sources that take precedence over these; `below`:
 * banana.json, or the `banana` key of package.json, and what SageMaker implies; `own`: the options of these alone. `isAppNamed`: an app was named, or
 * models with their apps.
 */
async function withMmsSources(
  above: readonly OptionSource[],
  below: readonly OptionSource[],
  own: ResolvedOptions,
  cwd: string,
  isAppNamed: boolean,
): Promise<{ resolved: ResolvedOptions; hasMmsConfig: boolean; warnings: readonly string[] }> {
  const { mmsConfig, modelStore, models } = own.options;
  const { env } = process;
  const hasStore = modelStore !== null || models !== null;
  const { config: found, warnings } = findConfig({
    given: mmsConfig === null ? null : { path: mmsConfig, place: sourceNameOf(own, 'mmsConfig') },
    env,
    folder: cwd,
    isAppNamed,
    hasApp: !hasStore && holdsApp(cwd),
  });
  const folders = found !== null || hasStore ? [folderVariables(env)] : [];
  if (found === null)
    return { resolved: resolveOptions([...above, ...folders, ...below]), hasMmsConfig: false, warnings };
  const { readMmsConfig } = await import('../options/mms/read-config.js'); // loads a library that only this needs
  const config = readMmsConfig(found, env);
  const resolved = resolveOptions([config.environment, ...above, ...folders, config.file, ...below]);
  return {
    resolved: { ...resolved, ...(config.settingOf && { settingOf: config.settingOf }) },
    hasMmsConfig: true,
    warnings: [...warnings, ...config.warnings],
  };
}

const CONFIG_VARIABLE = 'MMS_CONFIG_FILE';
const CONFIG_NAME = 'config.properties';

/**
 * Finds the `config.properties` that a server reads, if any. One that merely lies beside an app is not read. The warnings
 * are about files that are not read. @throws SERVE_CONFIG if the named file does not exist
 */
export function findConfig({
  given,
  env,
  folder,
  isAppNamed,
  hasApp,
}: {
  /** The value of `--mms-config` and its source; null if it was not given. */
  readonly given: { readonly path: string; readonly place: string } | null;
  readonly env: NodeJS.ProcessEnv;
  /** Base of relative paths, and the folder in which an unnamed file is looked for. */
  readonly folder: string;
  readonly isAppNamed: boolean;
  /** The folder has an app to serve. */
  readonly hasApp: boolean;
}): {
  readonly config: { readonly name: string; readonly path: string } | null;
  readonly warnings: readonly string[];
} {
  const variable = env[CONFIG_VARIABLE] ?? '';
  const named = variable === '' ? given : { path: variable, place: CONFIG_VARIABLE };
  if (named !== null) {
    const isOther = given !== null && resolve(folder, given.path) !== resolve(folder, named.path);
    const over = `${CONFIG_VARIABLE}=${variable} takes precedence over ${given?.place} ${given?.path}, which is not read`;
    const config = { name: named.path, path: existingFile(named.path, named.place, folder) };
    return { config, warnings: isOther ? [over] : [] };
  }
  const path = join(folder, CONFIG_NAME);
  if (isAppNamed || !existsSync(path)) return { config: null, warnings: [] };
  if (!hasApp) return { config: { name: CONFIG_NAME, path }, warnings: [] };
  const aside = `${CONFIG_NAME} is not read, because the folder has an app to serve; give --mms-config ${CONFIG_NAME} to read it`;
  return { config: null, warnings: [aside] };
}

function existingFile(given: string, place: string, folder: string): string {
  const path = resolve(folder, given);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    throw configError(
      `${place} ${given}: no such file.${given === 'sagemaker' ? SAGEMAKER : nearbyHint(given, folder)}`,
    );
  if (found.isDirectory()) throw configError(`${place} ${given}: this is a folder; give a file.`);
  return path;
}

const SAGEMAKER = ' There is no such profile here: give the argument serve instead (docs/sagemaker.md).';

/** LOG_LOCATION and METRICS_LOCATION of Multi Model Server: too common to be read by every server, so the caller decides. */
function folderVariables(env: NodeJS.ProcessEnv): OptionSource {
  const folder = (variable: string): string | undefined => env[variable] || undefined;
  return {
    values: { logLocation: folder('LOG_LOCATION'), metricsLocation: folder('METRICS_LOCATION') },
    where: (name) => (name === 'logLocation' ? 'LOG_LOCATION' : 'METRICS_LOCATION'),
  };
}

/**
 * Other defaults for servers that replace Multi Model Server: a server of a model store without an app, or with a
 * config.properties, listens where Multi Model Server did. With an app, only the management API is added.
 */
export function servedAs(
  resolved: ResolvedOptions,
  isAppNamed: boolean,
  hasMmsConfig: boolean,
): { resolved: ResolvedOptions; isMmsMode: boolean } {
  const { modelStore, models } = resolved.options;
  const isManaged = modelStore !== null || models !== null || hasMmsConfig;
  const isMmsMode = isManaged && !isAppNamed;
  const defaults = { ...(isManaged && { managementPort: 8081 }), ...(isMmsMode && MMS_DEFAULTS) };
  return { resolved: withDefaults(resolved, defaults), isMmsMode };
}

const MMS_DEFAULTS: Partial<Options> = {
  host: '127.0.0.1',
  port: 8080,
  // Multi Model Server prefixes each line of a worker with its model; and models come from other people.
  logPrefix: 'potassium',
  withholdEnv: SECRET_PATTERN,
  metricsMode: 'log',
};
