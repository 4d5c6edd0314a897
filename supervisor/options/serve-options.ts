/** Checks the options that a program passes to `serve()`; plain JavaScript may pass anything. */
import { statSync } from 'node:fs';
import {
  checkedCommand,
  isText,
  readModelMap,
  takeModelMap,
  type EntryStyle,
  type ModelEntry,
} from './model-entries.js';
import { notAllowed, type OptionSource } from './resolve.js';

export interface CheckedServeOptions {
  /** Undefined: the app of the config file, or the one in `cwd`. */
  readonly app: string | undefined;
  /** A copy of the caller's array. Undefined: our own worker. */
  readonly workerCommand: readonly string[] | undefined;
  /** Models besides the app. */
  readonly models: readonly ModelEntry[];
  readonly cwd: string;
  /** All other options, by their names in the table; not checked yet. */
  readonly source: OptionSource;
}

/** @throws SERVE_CONFIG with option, value and the allowed values */
export function readServeOptions(given: unknown): CheckedServeOptions {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw notAllowed('serve(options)', given, "an object of options, such as { app: './app.ts' }");
  }
  const { app, workerCommand, models, cwd = process.cwd(), ...others } = given as Record<string, unknown>;
  const { map, values } = takeModelMap(models, others);
  if (app !== undefined && !isText(app)) throw notAllowed('serve({ app })', app, 'the path of the app');
  if (!isFolder(cwd)) throw notAllowed('serve({ cwd })', cwd, 'the path of a folder');
  return {
    app,
    workerCommand:
      workerCommand === undefined ? undefined : checkedCommand(workerCommand, 'serve({ workerCommand })'),
    models: readModelMap(map, 'serve({ models })', GIVEN),
    cwd,
    source: {
      values,
      where: (name) => `serve({ ${name} })`,
      alsoTakes: ['app', 'workerCommand', 'models', 'cwd'],
      numbersAreMs: true,
    },
  };
}

const GIVEN: EntryStyle = {
  place: (name, key) => `serve({ models.${name}${key === undefined ? '' : `.${key}`} })`,
  isProgram: true,
};

function isFolder(value: unknown): value is string {
  try {
    return isText(value) && statSync(value).isDirectory();
  } catch {
    return false;
  }
}
