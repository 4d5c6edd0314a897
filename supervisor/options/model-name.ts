/** Names and versions of models: they stand in paths, in logs and in the names of files. */
import { basename } from 'node:path';
import { NotAllowed } from './units.js';

export interface ModelRef {
  readonly name: string;
  /** The model's default version if left out. */
  readonly version?: string | undefined;
}

/** A model's name with the version that is meant. */
export interface FullModelRef {
  readonly name: string;
  readonly version: string;
}

/** The version of a model that nobody gave one. */
export const FIRST_VERSION = '1';

/** What `isModelName` takes, in words that follow "give". */
export const MODEL_NAME_RULE =
  'up to 128 letters, digits, dots, underscores and hyphens, the first a letter, a digit or an underscore';

/** Whether a model or a version may be called so: no character of it means anything in a path, a shell or a log. */
export function isModelName(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(text);
}

/** @throws NotAllowed */
export function parseModelName(raw: unknown): string {
  if (isModelName(raw)) return raw;
  throw new NotAllowed(MODEL_NAME_RULE);
}

/** A name for the model of an app that was given none: its file's, with hyphens for what a name may not hold. */
export function nameOfApp(app: string): string {
  const stem = basename(app).replace(/\.\w+$/, '');
  const name = stem
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[.-]+|-+$/g, '')
    .slice(0, 128);
  return name === '' ? 'model' : name;
}

/** How a log names a model, and with it one of its versions where there may be another. */
export function labelOf({ name, version }: FullModelRef): string {
  return version === FIRST_VERSION ? name : `${name}@${version}`;
}
