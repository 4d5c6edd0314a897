/** Which `config.properties` a server reads, if any. A stray one beside an app is not read. */
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configError } from '../../../protocol/errors.js';
import { nearbyHint } from '../nearby-path.js';

const VARIABLE = 'MMS_CONFIG_FILE';
const USUAL_NAME = 'config.properties';

/** What a server knows before it has read the file. */
export interface ConfigQuery {
  /** `--mms-config`, and where it was written; null: nowhere. */
  readonly given: { readonly path: string; readonly place: string } | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of relative paths, and the one in which the file may lie without being named. */
  readonly folder: string;
  /** Whether the file of that folder is read, though nobody named it. */
  readonly mayBeUnnamed: boolean;
}

export interface FoundConfig {
  /** As it was given: how messages name it. */
  readonly name: string;
  readonly path: string;
}

/** @throws SERVE_CONFIG if the file that is named is not there */
export function findConfig({ given, env, folder, mayBeUnnamed }: ConfigQuery): FoundConfig | null {
  const variable = env[VARIABLE] ?? '';
  if (variable !== '') return named(variable, VARIABLE, folder);
  if (given !== null) return named(given.path, given.place, folder);
  const path = join(folder, USUAL_NAME);
  return mayBeUnnamed && existsSync(path) ? { name: USUAL_NAME, path } : null;
}

/** What an operator may expect otherwise: of two files one counts, and one that is there may not be read. */
export function lookupWarnings(
  { given, env, folder, mayBeUnnamed }: ConfigQuery,
  isAppNamed: boolean,
): string[] {
  const variable = env[VARIABLE] ?? '';
  if (variable !== '')
    return given === null || resolve(folder, given.path) === resolve(folder, variable)
      ? []
      : [`${VARIABLE}=${variable} goes before ${given.place} ${given.path}, which is not read`];
  if (given !== null || mayBeUnnamed || isAppNamed || !existsSync(join(folder, USUAL_NAME))) return [];
  return [
    `${USUAL_NAME} is not read, because there is an app to serve beside it; --mms-config ${USUAL_NAME} reads it`,
  ];
}

function named(given: string, place: string, folder: string): FoundConfig {
  const path = resolve(folder, given);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    throw configError(
      `${place} ${given}: no such file.${given === 'sagemaker' ? SAGEMAKER : nearbyHint(given, folder)}`,
    );
  if (found.isDirectory()) throw configError(`${place} ${given}: a file is wanted, and this is a folder.`);
  return { name: given, path };
}

const SAGEMAKER =
  ' The profile of that name is not there; write a file instead, with inference_address=http://0.0.0.0:$$SAGEMAKER_BIND_TO_PORT$$ and the other values of the platform.';
