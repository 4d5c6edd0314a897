/**
 * Reads the options of a server from all their sources, and the models that they name. In order of precedence: variables
 * MMS_<KEY> if config.properties enables them, the command line or the program, BANANA_<OPTION>, config.properties,
 * banana.json, defaults. A server that replaces Multi Model Server has other defaults.
 */
import { readConfigFile } from '../options/config-file.js';
import { readEnvironment } from '../options/environment.js';
import { findConfig, lookupWarnings } from '../options/mms/find-config.js';
import { readModelFlags, readServeOptions, type ModelEntry } from '../options/read-objects.js';
import {
  resolveOptions,
  sourceNameOf,
  withDefaults,
  type OptionSource,
  type Options,
  type ResolvedOptions,
} from '../options/resolve.js';
import { SECRET_PATTERN } from '../options/secret-names.js';
import { IN_MEMORY } from '../options/value-forms.js';
import { holdsApp } from './app-path.js';
import type { ServeInternals, ServeOptions } from './given-options.js';

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
  const { isAlone = false, appPlace = '', modelFlags = [], stop } = internals;
  const program = readServeOptions(given);
  const { cwd, workerCommand = null } = program;
  const environment = readEnvironment(process.env);
  const file = readConfigFile(cwd);
  const app = program.app ?? (workerCommand === null ? file.app : undefined) ?? null;
  const isAppNamed = app !== null || workerCommand !== null;
  const entries = isAlone ? [] : [...readModelFlags(modelFlags), ...program.models, ...file.models];
  const above = [internals.flags ?? program.source, environment.source];
  const own = resolveOptions([...above, file.source]);
  const { resolved, hasMmsConfig, warnings } = isAlone
    ? { resolved: alone(own), hasMmsConfig: false, warnings: [] }
    : await withMmsSources({
        above,
        file: file.source,
        own,
        cwd,
        isAppNamed: isAppNamed || entries.length > 0,
      });
  return {
    ...servedAs(resolved, isAppNamed, hasMmsConfig),
    ...{ app, appPlace, workerCommand, entries, cwd, stop },
    warnings: [...(internals.warnings ?? []), ...environment.warnings, ...warnings],
  };
}

/** Without the options that add models besides the app, or that share a folder with another server. */
function alone(own: ResolvedOptions): ResolvedOptions {
  const without = { modelStore: null, models: null, managementPort: null, jobs: IN_MEMORY };
  return { ...own, options: { ...own.options, ...without } };
}

interface OwnSources {
  /** Sources that take precedence over those of Multi Model Server. */
  readonly above: readonly OptionSource[];
  /** banana.json, or the `banana` key of package.json. */
  readonly file: OptionSource;
  /** The options of these sources alone. */
  readonly own: ResolvedOptions;
  readonly cwd: string;
  /** Whether an app was named, or models with their apps. */
  readonly isAppNamed: boolean;
}

/** Adds config.properties, and variables of Multi Model Server. */
async function withMmsSources({
  above,
  file,
  own,
  cwd,
  isAppNamed,
}: OwnSources): Promise<{ resolved: ResolvedOptions; hasMmsConfig: boolean; warnings: readonly string[] }> {
  const { mmsConfig, modelStore, models } = own.options;
  const { env } = process;
  const hasStore = modelStore !== null || models !== null;
  const query = {
    given: mmsConfig === null ? null : { path: mmsConfig, place: sourceNameOf(own, 'mmsConfig') },
    env,
    folder: cwd,
    mayBeUnnamed: !isAppNamed && (hasStore || !holdsApp(cwd)),
  };
  const found = findConfig(query);
  const warnings = lookupWarnings(query, isAppNamed);
  const folders = found !== null || hasStore ? [folderVariables(env)] : [];
  if (found === null)
    return { resolved: resolveOptions([...above, ...folders, file]), hasMmsConfig: false, warnings };
  const { readMmsConfig } = await import('../options/mms/read-config.js'); // loads a library that only this needs
  const config = readMmsConfig(found, env);
  const resolved = resolveOptions([config.environment, ...above, ...folders, config.file, file]);
  return {
    resolved: { ...resolved, ...(config.settingOf && { settingOf: config.settingOf }) },
    hasMmsConfig: true,
    warnings: [...warnings, ...config.warnings],
  };
}

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
