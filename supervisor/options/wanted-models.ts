/** Reads `--models` (the models of a store to load at the start) and the options beside it. */
import { isModelName } from './model-name.js';
import { NotAllowed } from './units.js';

export interface WantedModel {
  /** Null: the name comes from the store. */
  readonly name: string | null;
  /** Path in the store. */
  readonly url: string;
}

/** `all`: everything in the store that can be a model. */
export type WantedModels = 'all' | readonly WantedModel[];

/** Reads `all`, `none`, or `[name=]path` from a comma-separated text or an array. @throws NotAllowed */
export function parseWantedModels(raw: unknown): WantedModels {
  const given: readonly unknown[] = Array.isArray(raw) ? raw : [raw];
  const texts = given
    .flatMap((one) => (typeof one === 'string' ? one.split(',') : ['']))
    .map((text) => text.trim());
  const [only = '', ...others] = texts.map((text) => text.toLowerCase());
  if (others.length === 0 && only === 'all') return 'all';
  if (others.length === 0 && only === 'none') return [];
  if (texts.length === 0) throw new NotAllowed(ALLOWED);
  return texts.map(parseWantedModel);
}

const ALLOWED =
  'all, none, or paths in the model store, separated by commas, each optionally after a name: digits,cats=zoo/cats';

function parseWantedModel(text: string): WantedModel {
  const [name = '', ...rest] = text.split('=');
  if (rest.length > 0 && !name.includes('/')) {
    const url = rest.join('=').trim();
    if (!isModelName(name.trim()) || url === '') throw new NotAllowed(ALLOWED);
    return { name: name.trim(), url };
  }
  if (text === '') throw new NotAllowed(ALLOWED);
  return { name: null, url: text };
}

/** @throws NotAllowed */
export function parseFolder(raw: unknown): string {
  if (typeof raw !== 'string' || raw.trim() === '') throw new NotAllowed('the path of a folder');
  return raw;
}

/** @throws NotAllowed */
export function parseHandler(raw: unknown): string {
  if (typeof raw !== 'string' || !/^[^:\s]+(?::[\w$]+)?$/.test(raw.trim()))
    throw new NotAllowed('a file of the model, optionally followed by a function or class: service:handle');
  return raw.trim();
}
