/** Takes apart and checks the options that a program gives to `serve()`; perhaps no compiler has seen them. */
import { statSync } from 'node:fs';
import { notAllowed, type OptionSource } from './resolve.js';

export interface CheckedServeOptions {
  /** Undefined: the config file's, or the one in `cwd`. */
  readonly app: string | undefined;
  /** A copy: the caller may go on with its own. Undefined: our own worker. */
  readonly workerCommand: readonly string[] | undefined;
  readonly cwd: string;
  /** All the others, by the names of the table; not checked yet. */
  readonly source: OptionSource;
}

/** @throws SERVE_CONFIG naming option, value and what is allowed */
export function readServeOptions(given: unknown): CheckedServeOptions {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw notAllowed('serve(options)', given, "an object of options, such as { app: './app.ts' }");
  }
  const { app, workerCommand, cwd = process.cwd(), ...values } = given as Record<string, unknown>;
  if (app !== undefined && !isPath(app)) throw notAllowed('serve({ app })', app, 'the path of the app');
  if (workerCommand !== undefined && !isCommand(workerCommand)) {
    const allowed = "an array of the program and its arguments, such as ['python3', '-u', 'worker.py']";
    throw notAllowed('serve({ workerCommand })', workerCommand, allowed);
  }
  if (!isFolder(cwd)) throw notAllowed('serve({ cwd })', cwd, 'the path of a folder');
  return {
    app,
    workerCommand: workerCommand === undefined ? undefined : [...workerCommand],
    cwd,
    source: {
      values,
      where: (name) => `serve({ ${name} })`,
      alsoTakes: ['app', 'workerCommand', 'cwd'],
      numbersAreMs: true,
    },
  };
}

function isPath(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

function isCommand(value: unknown): value is readonly string[] {
  if (!Array.isArray(value)) return false;
  const parts = Array.from<unknown>(value); // a hole is undefined now; `every` alone would leave it out
  return isPath(parts[0]) && parts.every((part) => typeof part === 'string');
}

function isFolder(value: unknown): value is string {
  try {
    return isPath(value) && statSync(value).isDirectory();
  } catch {
    return false;
  }
}
