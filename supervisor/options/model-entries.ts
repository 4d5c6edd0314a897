/** Reads the models that are named on the command line, in the config file or by a program. */
import { configError } from '../../protocol/errors.js';
import { FIRST_VERSION, MODEL_NAME_RULE, isModelName } from './model-name.js';
import { notAllowed, type OptionSource } from './resolve.js';

/** One named model; only its name and version are checked. */
export interface ModelEntry {
  readonly name: string;
  readonly version: string;
  /** Path as given; undefined if `workerCommand` needs no app. */
  readonly app: string | undefined;
  /** Program and arguments of a worker in another language; undefined for our own worker. */
  readonly workerCommand: readonly string[] | undefined;
  /** Options of this model alone, not checked yet. */
  readonly source: OptionSource;
  /** The source of the model, for errors: `--model digits=./digits.ts`, `banana.json: models.digits`. */
  readonly place: string;
}

/** Properties of one kind of source of models. */
export interface EntryStyle {
  /** Describes a model, or one of its keys, for errors. */
  place(name: string, key?: string): string;
  /** Given by a program: durations may be numbers of ms, and workers may be in other languages. */
  readonly isProgram: boolean;
}

/** Reads the values of `--model`, each `name=path`. @throws SERVE_CONFIG */
export function readModelFlags(flags: readonly string[]): ModelEntry[] {
  return flags.map((flag) => {
    const place = `--model ${flag}`;
    const [name, ...rest] = flag.split('=');
    const app = rest.join('=').trim();
    if (app === '' || name === undefined)
      throw configError(
        `${place}: give a name and the path of an app, such as --model digits=./digits/app.ts.`,
      );
    const source = { values: {}, where: (key: string) => `${place}: ${key}` };
    return { ...checkedRef(name, FIRST_VERSION, place), app, workerCommand: undefined, source, place };
  });
}

/** Separates the two meanings of `models`: an object of models, or (a string or an array) the option `--models`. */
export function takeModelMap(
  models: unknown,
  values: Readonly<Record<string, unknown>>,
): { map: unknown; values: Readonly<Record<string, unknown>> } {
  const isOption = typeof models === 'string' || Array.isArray(models);
  return isOption ? { map: undefined, values: { ...values, models } } : { map: models, values };
}

/** Reads an object from model names to paths, or to objects of path and options. @throws SERVE_CONFIG */
export function readModelMap(given: unknown, where: string, style: EntryStyle): ModelEntry[] {
  if (given === undefined) return [];
  if (!isObject(given))
    throw notAllowed(where, given, 'an object of models, such as { "digits": "./digits/app.ts" }');
  return Object.entries(given).map(([name, entry]) => readModelEntry(name, entry, style));
}

/** @throws SERVE_CONFIG */
export function readModelEntry(name: string, given: unknown, style: EntryStyle): ModelEntry {
  const place = style.place(name);
  const entry: unknown = typeof given === 'string' ? { app: given } : given;
  if (!isObject(entry))
    throw notAllowed(place, given, 'the path of an app, or an object with app and options of a model');
  const { app, version = FIRST_VERSION, ...rest } = entry;
  const { workerCommand, values } = takeCommand(rest, style, name);
  if (app === undefined ? workerCommand === undefined : !isText(app))
    throw notAllowed(style.place(name, 'app'), app, 'the path of the app');
  const alsoTakes = ['app', 'version', ...(style.isProgram ? ['workerCommand'] : [])];
  const source: OptionSource = {
    values,
    where: (key) => style.place(name, key),
    alsoTakes,
    ...(style.isProgram ? { numbersAreMs: true } : {}),
  };
  return {
    ...checkedRef(name, version, place),
    app: app as string | undefined,
    workerCommand,
    source,
    place,
  };
}

/** Refuses two models of the same name, from any two sources. @throws SERVE_CONFIG with both sources */
export function refuseTwins(entries: readonly Pick<ModelEntry, 'name' | 'version' | 'place'>[]): void {
  const places = new Map<string, string>();
  for (const { name, place } of entries) {
    const other = places.get(name);
    if (other !== undefined)
      throw configError(`${place} and ${other} are two models with the same name; rename one.`);
    places.set(name, place);
  }
}

function takeCommand(
  { workerCommand, ...values }: Record<string, unknown>,
  { isProgram, place }: EntryStyle,
  name: string,
): { workerCommand: readonly string[] | undefined; values: Record<string, unknown> } {
  if (workerCommand === undefined) return { workerCommand, values };
  if (!isProgram) return { workerCommand: undefined, values: { ...values, workerCommand } }; // refused later as an unknown option
  return { workerCommand: checkedCommand(workerCommand, place(name, 'workerCommand')), values };
}

/** Returns a copy, so the caller may change its own array later. @throws SERVE_CONFIG */
export function checkedCommand(given: unknown, where: string): readonly string[] {
  const parts = Array.isArray(given) ? Array.from<unknown>(given) : []; // turns holes into undefined; `every` would skip holes
  if (isText(parts[0]) && parts.every((part) => typeof part === 'string')) return parts;
  const allowed = "an array of the program and its arguments, such as ['python3', '-u', 'worker.py']";
  throw notAllowed(where, given, allowed);
}

function checkedRef(name: unknown, version: unknown, place: string): { name: string; version: string } {
  if (!isModelName(name)) throw notAllowed(`${place}: the name`, name, MODEL_NAME_RULE);
  if (!isModelName(version)) throw notAllowed(`${place}: version`, version, MODEL_NAME_RULE);
  return { name, version };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}
