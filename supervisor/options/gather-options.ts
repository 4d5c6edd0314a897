/**
 * All sources of a server's options in their order, Multi Model Server's own included: variables MMS_<KEY> where its file
 * lets them count, the command line or the program, BANANA_<OPTION>, config.properties, banana.json, defaults.
 */
import { findConfig, lookupWarnings, type ConfigQuery } from './mms/find-config.js';
import { resolveOptions, type OptionSource, type ResolvedOptions } from './resolve.js';

export interface GivenSources {
  /** The command line, or what a program gave. */
  readonly given: OptionSource;
  readonly environment: OptionSource;
  /** banana.json, or its key in package.json. */
  readonly file: OptionSource;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  /** Whether somebody has named an app, or models by their apps. */
  readonly isAppNamed: boolean;
  /** Whether the folder holds an app that is served where nobody names one. */
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
  const places = found !== null || hasStore(own) ? placesOf(env) : NO_PLACES;
  if (found === null)
    return { resolved: resolveOptions([given, environment, places, file]), hasMmsConfig: false, warnings };
  const { readMmsConfig } = await import('./mms/read-config.js'); // with a library that nobody else needs
  const config = readMmsConfig(found, env);
  const resolved = resolveOptions([config.environment, given, environment, places, config.file, file]);
  return { resolved, hasMmsConfig: true, warnings: [...warnings, ...config.warnings] };
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

/** Variables of Multi Model Server that are too common to count for those who do not come from there. */
function placesOf(env: GivenSources['env']): OptionSource {
  const given = Object.entries(PLACES).flatMap(([name, variable]) => {
    const folder = env[variable] ?? '';
    return folder === '' ? [] : [[name, folder] as const];
  });
  return { values: Object.fromEntries(given), where: (name) => PLACES[name] ?? name };
}

const PLACES: Readonly<Record<string, string>> = {
  logLocation: 'LOG_LOCATION',
  metricsLocation: 'METRICS_LOCATION',
};

const NO_PLACES: OptionSource = { values: {}, where: (name) => name };
