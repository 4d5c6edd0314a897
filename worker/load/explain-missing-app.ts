/** Explains why a file has no app that could be served, and how to mend that. */
import { accessSync, constants, readFileSync, statSync, type Stats } from 'node:fs';
import { basename, dirname } from 'node:path';
import { typeText } from '../adapters/exports.js';
import { serviceClasses } from '../adapters/service-handler.js';
import { suggest } from '../../protocol/text/sentences.js';
import { hintOnce } from '../process/hint-once.js';
import { AppLoadError, locateText } from './explain-load-error.js';
import type { Exports } from '../adapters/loaded-app.js';

/**
 * Returns an error if the path can not be loaded as an app; null if it may be, or does not exist. `isKnown`: a loader has
 * its extension.
 */
export function notLoadable(path: string, isKnown: boolean): AppLoadError | null {
  const [file, name] = [dirname(path), basename(path)];
  if (statOf(file)?.isFile() === true)
    return new AppLoadError(`${file}: the model is this file, but its handler names another one, ${name}.`);
  const found = statOf(path);
  if (found === undefined) return null; // the import reports it
  if (found.isDirectory())
    return new AppLoadError(
      `${path}: it is not clear which file is the handler. Name it at the registration (handler=file:function), or name the file service, app or index. A model without code is the only .onnx file of its folder, or 1/model.onnx in it.`,
    );
  if (!isKnown)
    return new AppLoadError(`${path}: this is not an app. Write it in TypeScript, JavaScript or Python.`);
  if (!isReadable(path))
    return new AppLoadError(`${path}: the file cannot be read: the server's user has no permission for it.`);
  return null;
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** The error of a file that exports no app of any kind. `isMade`: it has created or served one. */
export function missingApp(path: string, candidates: readonly Exports[], isMade: boolean): AppLoadError {
  const where = locateText(path, MAKES_POTASSIUM);
  if (isMade)
    return new AppLoadError(
      `${where}: this file makes a Potassium app and does not export it as its default. Add \`export default app\`, or \`module.exports = app\` in CommonJS.`,
    );
  if (codeOf(path).includes(MAKES_POTASSIUM))
    return new AppLoadError(
      `${where}: this Potassium app is not created while the file is imported. Call the function that creates it at the top level of the file and export its result: \`export default createApp()\`, with your function's name.`,
    );
  return missingInference(path, candidates);
}

const MAKES_POTASSIUM = 'new Potassium';

/** Returns a file's text without its comments, approximately, since it is not parsed; empty if it cannot be read. */
function codeOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm, '');
  } catch {
    return ''; // the file may be a virtual one
  }
}

function missingInference(path: string, candidates: readonly Exports[]): AppLoadError {
  const names = exportedNames(candidates);
  if (names.includes('inference')) {
    const value = candidates.find((exports) => exports['inference'] !== undefined)?.['inference'];
    const where = locateText(path, 'inference');
    return new AppLoadError(`${where}: export \`inference\` is ${typeText(value)}; make it a function`);
  }
  const unnamed = candidates.find((exports) => typeof exports['default'] === 'function');
  if (unnamed !== undefined) {
    const where = locateText(path, 'export default');
    return new AppLoadError(
      `${where}: the default export is a function; export it by name: \`export function inference(modelInputs) { … }\`.`,
    );
  }
  const close = names.find(
    (name) => /infer|predict|handler|run/i.test(name) || mistypedAs(name, CALLED) !== null,
  );
  const meant = mistypedAs(close ?? '', CALLED);
  const right = meant ?? (/batch/i.test(close ?? '') ? 'inferenceBatch' : 'inference');
  const question = meant === null ? '' : `Did you mean \`${right}\`? `;
  const cure =
    close === undefined
      ? 'Add `export function inference(modelInputs) { … }`.'
      : `${question}Rename \`${close}\` to \`${right}\`, or export it under that name.`;
  const where = close === undefined ? `${path}:1` : locateText(path, close);
  return new AppLoadError(
    `${where}: ${basename(path)} exports no \`inference\` function. ${exportsOf(names)} ${cure}`,
  );
}

/** Functions of which an app needs one. */
const CALLED = ['inference', 'inferenceBatch'] as const;

const FUNCTIONS = [...CALLED, 'init', 'shutdown'] as const;

/**
 * Writes a line to the log about each exported function that nothing calls, and whose name is nearly that of one that the
 * app does not have: an `inti` would never run, and nobody would know.
 */
export function hintMisnamed(path: string, exports: Exports): void {
  const missing = FUNCTIONS.filter((name) => exports[name] === undefined);
  for (const name of exportedNames([exports])) {
    const right = mistypedAs(name, missing);
    if (right === null || typeof exports[name] !== 'function') continue;
    const where = locateText(path, name);
    hintOnce(
      `export ${name}`,
      () => `${where}: the server never calls \`${name}\`. Did you mean \`${right}\`?`,
    );
  }
}

/** The one of `words` that was meant; null if none is near, or the name is one of them. */
function mistypedAs(name: string, words: readonly string[]): string | null {
  return words.includes(name) ? null : suggest(name, words);
}

/** The error of a custom service without a handler of the given name. */
export function missingHandler(path: string, candidates: readonly Exports[], name: string): AppLoadError {
  const file = basename(path);
  const classes = serviceClasses(candidates).map((candidate) => candidate.name);
  const names = exportedNames(candidates);
  const wanted = name === '' ? 'a function `handle`' : `\`${name}\``;
  const choice =
    classes.length > 1
      ? `It has the classes ${classes.join(', ')} with a \`handle\` method: name the one to serve, as in ${file}:${classes[0]}.`
      : 'Add `export function handle(data, context) { … }`, or export one class with such a method.';
  return new AppLoadError(
    `${path}:1: no handler: ${file} exports neither ${wanted} nor exactly one class with a \`handle\` method. ${exportsOf(names)} ${choice}`,
  );
}

function exportedNames(candidates: readonly Exports[]): string[] {
  return [...new Set(candidates.flatMap((exports) => Object.keys(exports)))].filter(
    (name) => name !== 'default' && name !== '__esModule' && name !== 'module.exports',
  );
}

function exportsOf(names: readonly string[]): string {
  return names.length === 0 ? 'It exports nothing.' : `It exports: ${names.join(', ')}.`;
}
