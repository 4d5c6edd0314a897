/**
 * Merges all sources of a server's options. In order of precedence: variables MMS_<KEY> if config.properties enables them,
 * the command line or the program, BANANA_<OPTION>, config.properties, banana.json, defaults.
 */
import { findConfig, lookupWarnings, type ConfigQuery } from './mms/find-config.js';
import { resolveOptions, type OptionSource, type ResolvedOptions } from './resolve.js';

export interface GivenSources {
  /** The command line, or the options that a program passed. */
  readonly given: OptionSource;
  readonly environment: OptionSource;
  /** banana.json, or the `banana` key of package.json. */
  readonly file: OptionSource;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  /** Whether an app was named, or models with their apps. */
  readonly isAppNamed: boolean;
  /** Whether the folder has an app that is served if none is named. */
  readonly isAppThere: boolean;
}

export interface GatheredOptions {
  readonly resolved: ResolvedOptions;
  /** A `config.properties` was read. */
  readonly hasMmsConfig: boolean;
  readonly warnings: readonly string[];
}

/** Rejects with SERVE_CONFIG. */
export async function gatherOptions(sources: GivenSources): Promise<GatheredOptions> {
  const { given, environment, file, env, isAppNamed } = sources;
  const own = resolveOptions([given, environment, file]);
  const query = queryOf(sources, own);
  const found = findConfig(query);
  const warnings = lookupWarnings(query, isAppNamed);
  const places = found !== null || hasStore(own) ? folderVariables(env) : NO_VARIABLES;
  if (found === null)
    return { resolved: resolveOptions([given, environment, places, file]), hasMmsConfig: false, warnings };
  const { readMmsConfig } = await import('./mms/read-config.js'); // loads a library that only this needs
  const config = readMmsConfig(found, env);
  const resolved = resolveOptions([config.environment, given, environment, places, config.file, file]);
  const { models } = config;
  const withModels = models === null ? resolved : { ...resolved, modelSettings: models };
  return { resolved: withModels, hasMmsConfig: true, warnings: [...warnings, ...config.warnings] };
}

function queryOf({ env, folder, isAppNamed, isAppThere }: GivenSources, own: ResolvedOptions): ConfigQuery {
  const { mmsConfig } = own.options;
  const place = own.explicit.get('mmsConfig') ?? '--mms-config';
  return {
    given: mmsConfig === null ? null : { path: mmsConfig, place },
    env,
    folder,
    mayBeUnnamed: !isAppNamed && (hasStore(own) || !isAppThere),
  };
}

function hasStore({ options: { modelStore, models } }: ResolvedOptions): boolean {
  return modelStore !== null || models !== null;
}

/** LOG_LOCATION and METRICS_LOCATION of Multi Model Server: too common to be read by every server, so the caller decides. */
function folderVariables(env: GivenSources['env']): OptionSource {
  const given = Object.entries(FOLDER_VARIABLES).flatMap(([name, variable]) => {
    const folder = env[variable] ?? '';
    return folder === '' ? [] : [[name, folder] as const];
  });
  return { values: Object.fromEntries(given), where: (name) => FOLDER_VARIABLES[name] ?? name };
}

const FOLDER_VARIABLES: Readonly<Record<string, string>> = {
  logLocation: 'LOG_LOCATION',
  metricsLocation: 'METRICS_LOCATION',
};

const NO_VARIABLES: OptionSource = { values: {}, where: (name) => name };
