/** Finds the `config.properties` that a server reads, if any. One that merely lies beside an app is not read. */
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configError } from '../../../protocol/errors.js';
import { nearbyHint } from '../nearby-path.js';

const VARIABLE = 'MMS_CONFIG_FILE';
const USUAL_NAME = 'config.properties';

/** Facts that decide which file is read. */
export interface ConfigQuery {
  /** The value of `--mms-config` and its source; null if it was not given. */
  readonly given: { readonly path: string; readonly place: string } | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Base of relative paths, and the folder in which an unnamed file is looked for. */
  readonly folder: string;
  /** Whether the file of that folder is read without being named. */
  readonly mayBeUnnamed: boolean;
}

export interface FoundConfig {
  /** The path as given, for messages. */
  readonly name: string;
  readonly path: string;
}

/** @throws SERVE_CONFIG if the named file does not exist */
export function findConfig({ given, env, folder, mayBeUnnamed }: ConfigQuery): FoundConfig | null {
  const variable = env[VARIABLE] ?? '';
  if (variable !== '') return named(variable, VARIABLE, folder);
  if (given !== null) return named(given.path, given.place, folder);
  const path = join(folder, USUAL_NAME);
  return mayBeUnnamed && existsSync(path) ? { name: USUAL_NAME, path } : null;
}

/** Warnings about files that are not read: one that MMS_CONFIG_FILE overrides, or one beside an app. */
export function lookupWarnings(
  { given, env, folder, mayBeUnnamed }: ConfigQuery,
  isAppNamed: boolean,
): string[] {
  const variable = env[VARIABLE] ?? '';
  if (variable !== '')
    return given === null || resolve(folder, given.path) === resolve(folder, variable)
      ? []
      : [`${VARIABLE}=${variable} takes precedence over ${given.place} ${given.path}, which is not read`];
  if (given !== null || mayBeUnnamed || isAppNamed || !existsSync(join(folder, USUAL_NAME))) return [];
  return [
    `${USUAL_NAME} is not read, because the folder has an app to serve; give --mms-config ${USUAL_NAME} to read it`,
  ];
}

function named(given: string, place: string, folder: string): FoundConfig {
  const path = resolve(folder, given);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    throw configError(
      `${place} ${given}: no such file.${given === 'sagemaker' ? SAGEMAKER : nearbyHint(given, folder)}`,
    );
  if (found.isDirectory()) throw configError(`${place} ${given}: this is a folder; give a file.`);
  return { name: given, path };
}

const SAGEMAKER =
  ' The profile of that name does not exist here; write a file instead, with inference_address=http://0.0.0.0:$$SAGEMAKER_BIND_TO_PORT$$ and the other values of the platform.';
