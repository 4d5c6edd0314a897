/**
 * Readers of objects: the options that a program passes to `serve()` or `server.models`, those of the config file, and the
 * models in either. They deliver raw values; only app, models, command and folder, which are no options, are checked here.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ServeError, configError } from '../../protocol/errors.js';
import { FIRST_VERSION, MODEL_NAME_RULE, isModelName } from './model-name.js';
import { NO_OPTIONS, notAllowed, type OptionSource } from './resolve.js';

/** An app, and the options beside it; plain JavaScript and JSON may give anything. */
interface GivenApp {
  /** Path as given. Undefined: not named, or `workerCommand` needs no app. */
  readonly app: string | undefined;
  /** Program and arguments of a worker in another language, a copy; undefined for our own worker. */
  readonly workerCommand: readonly string[] | undefined;
  /** All other options, by their names in the table; not checked yet. */
  readonly source: OptionSource;
}

/** One named model; only its name and version are checked. */
export interface ModelEntry extends GivenApp {
  readonly name: string;
  readonly version: string;
  /** The source of the model, for errors: `--model digits=./digits.ts`, `banana.json: models.digits`. */
  readonly place: string;
}

export interface GivenOptions extends GivenApp {
  /** Models besides the app. */
  readonly models: readonly ModelEntry[];
}

/** Describes an object of options, and its keys, for errors. */
interface ObjectPlace {
  where(key: string): string;
  /** Given by a program: durations may be numbers of ms, and workers may be in other languages. */
  readonly isProgram: boolean;
}

/** Reads what a program passes to `serve()`, or an app to `run()`. @throws SERVE_CONFIG with option, value and the allowed values */
export function readServeOptions(
  given: unknown,
  caller: 'serve' | 'run' = 'serve',
): GivenOptions & { readonly cwd: string } {
  if (!isObject(given))
    throw notAllowed('serve(options)', given, "an object of options, such as { app: './app.ts' }");
  const { cwd = process.cwd(), ...options } = given;
  if (!isFolder(cwd)) throw notAllowed('serve({ cwd })', cwd, 'the path of a folder');
  const place = { where: (key: string) => `${caller}({ ${key} })`, isProgram: true };
  return { ...readOptions(options, place, ['app', 'workerCommand', 'models', 'cwd']), cwd };
}

function isFolder(value: unknown): value is string {
  try {
    return isText(value) && statSync(value).isDirectory();
  } catch {
    return false;
  }
}

/**
 * Reads `banana.json`, or the `banana` key of package.json, in the folder where the server starts. @throws SERVE_CONFIG if a
 * file is not a JSON object, or if both files have options
 */
export function readConfigFile(folder: string): GivenOptions {
  const own = readObject(join(folder, 'banana.json'), 'banana.json');
  const inPackage = readObject(join(folder, 'package.json'), 'package.json')?.['banana'];
  if (own !== null && inPackage !== undefined) {
    throw configError('banana.json and the "banana" key of package.json both hold options; keep one.');
  }
  const file = own !== null ? 'banana.json' : 'package.json, key "banana"';
  const place = { where: (name: string) => `${file}: ${name}`, isProgram: false };
  return readOptions(asObject(own ?? inPackage ?? {}, file), place, ['app', 'models']);
}

function readObject(path: string, name: string): Record<string, unknown> | null {
  if (!existsSync(path)) return null;
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
    return asObject(JSON.parse(text), name);
  } catch (cause) {
    if (cause instanceof ServeError) throw cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    const reason = /api.?key|management.?key|secret|whsec_/i.test(text)
      ? message.replace(QUOTED_JSON, '')
      : message;
    throw configError(
      `${name} ${cause instanceof SyntaxError ? 'is not valid JSON' : 'cannot be read'}: ${reason}`,
    );
  }
}

/** V8 quotes the text around a syntax error, which may be a key. */
const QUOTED_JSON = /(^|, )(\.{3})?".*"(\.{3})? is not valid JSON$/s;

function asObject(value: unknown, name: string): Record<string, unknown> {
  if (isObject(value)) return value;
  throw configError(`${name} must contain an object of options.`);
}

/**
 * Reads the options of a server. `models` has two meanings: an object of models, or (a string or an array) the option
 * `--models`. `alsoTakes`: names besides options. @throws SERVE_CONFIG
 */
function readOptions(
  { models, ...given }: Readonly<Record<string, unknown>>,
  place: ObjectPlace,
  alsoTakes: readonly string[],
): GivenOptions {
  const isOption = typeof models === 'string' || Array.isArray(models);
  const read = readApp(isOption ? { ...given, models } : given, place, alsoTakes);
  if (read.app !== undefined && !isText(read.app))
    throw notAllowed(place.where('app'), read.app, 'the path of the app');
  return { ...read, models: isOption || models === undefined ? [] : readModels(models, place) };
}

function readModels(given: unknown, { where, isProgram }: ObjectPlace): ModelEntry[] {
  if (!isObject(given))
    throw notAllowed(where('models'), given, 'an object of models, such as { "digits": "./digits/app.ts" }');
  return Object.entries(given).map(([name, entry]) => {
    const place = `models.${name}`;
    return readModelEntry(name, entry, where(place), { where: (key) => where(`${place}.${key}`), isProgram });
  });
}

/** Reads one model, a path or an object of path and options. `place`: its source, for errors. @throws SERVE_CONFIG */
export function readModelEntry(name: string, given: unknown, place: string, keys: ObjectPlace): ModelEntry {
  const entry: unknown = typeof given === 'string' ? { app: given } : given;
  if (!isObject(entry))
    throw notAllowed(place, given, 'the path of an app, or an object with app and options of a model');
  const { version = FIRST_VERSION, ...rest } = entry;
  const alsoTakes = ['app', 'version', ...(keys.isProgram ? ['workerCommand'] : [])];
  const read = readApp(rest, keys, alsoTakes);
  if (read.app === undefined ? read.workerCommand === undefined : !isText(read.app))
    throw notAllowed(keys.where('app'), read.app, 'the path of the app');
  return { ...checkedRef(name, version, place), ...read, place };
}

/** Separates app and command from the options. The app is not checked yet. @throws SERVE_CONFIG if the command is none */
function readApp(
  given: Readonly<Record<string, unknown>>,
  { where, isProgram }: ObjectPlace,
  alsoTakes: readonly string[],
): GivenApp {
  const { app, ...values }: Record<string, unknown> = given;
  const command = isProgram ? values['workerCommand'] : undefined; // in a file, an option that does not exist
  if (isProgram) delete values['workerCommand'];
  return {
    app: app as string | undefined,
    workerCommand: command === undefined ? undefined : checkedCommand(command, where('workerCommand')),
    source: { values, where, alsoTakes, numbersAreMs: isProgram },
  };
}

function checkedCommand(given: unknown, where: string): readonly string[] {
  const parts = Array.isArray(given) ? Array.from<unknown>(given) : []; // turns holes into undefined; `every` would skip holes
  if (isText(parts[0]) && parts.every((part) => typeof part === 'string')) return parts;
  const allowed = "an array of the program and its arguments, such as ['python3', '-u', 'worker.py']";
  throw notAllowed(where, given, allowed);
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
    const ref = checkedRef(name, FIRST_VERSION, place);
    return { ...ref, app, workerCommand: undefined, source: NO_OPTIONS, place };
  });
}

function checkedRef(name: unknown, version: unknown, place: string): { name: string; version: string } {
  if (!isModelName(name)) throw notAllowed(`${place}: the name`, name, MODEL_NAME_RULE);
  if (!isModelName(version)) throw notAllowed(`${place}: version`, version, MODEL_NAME_RULE);
  return { name, version };
}

/** Refuses two models of the same name, from any two sources. @throws SERVE_CONFIG with both sources */
export function refuseTwins(entries: readonly Pick<ModelEntry, 'name' | 'place'>[]): void {
  const places = new Map<string, string>();
  for (const { name, place } of entries) {
    const other = places.get(name);
    if (other !== undefined)
      throw configError(`${place} and ${other} are two models with the same name; rename one.`);
    places.set(name, place);
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}
