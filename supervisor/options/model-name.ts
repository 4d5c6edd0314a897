/** Names and versions of models, as used in URL paths, logs and file names. */
import { basename } from 'node:path';
import { NotAllowed } from './units.js';

/**
 * A model by its name, and one of its versions if need be.
 * @example
 * const ref: ModelRef = { name: 'digits' };
 */
export interface ModelRef {
  readonly name: string;
  /** Default: the model's default version. */
  readonly version?: string | undefined;
}

/**
 * A model's name and version.
 * @example
 * const ref: FullModelRef = { name: 'digits', version: '2' };
 */
export interface FullModelRef {
  readonly name: string;
  readonly version: string;
}

/** The version of models that were given none. */
export const FIRST_VERSION = '1';

/** The rule of `isModelName` in words, to follow "give". */
export const MODEL_NAME_RULE =
  'up to 128 letters, digits, dots, underscores and hyphens, the first a letter, a digit or an underscore';

/** Whether `text` may name a model or a version: no character has a meaning in a URL path, a shell or a log. */
export function isModelName(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(text);
}

/** @throws NotAllowed */
export function parseModelName(raw: unknown): string {
  if (isModelName(raw)) return raw;
  throw new NotAllowed(MODEL_NAME_RULE);
}

/** Default name of an app's model: its file name, with hyphens for characters that a name may not have. */
export function nameOfApp(app: string): string {
  const stem = basename(app).replace(/\.\w+$/, '');
  const name = stem
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[.-]+|-+$/g, '')
    .slice(0, 128);
  return name === '' ? 'model' : name;
}

/** The model in log lines: its name, with the version unless that is the first. */
export function labelOf({ name, version }: FullModelRef): string {
  return version === FIRST_VERSION ? name : `${name}@${version}`;
}
