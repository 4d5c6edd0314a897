/**
 * Finds the files that flags of `torch-model-archiver` name. They lie beside each other in the archive, under their own
 * names; of a folder among `--extra-files`, the content.
 */
import { statSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { basename, extname, resolve } from 'node:path';
import { EXTENSIONS } from '../runtimes/index.js';
import { ArchiverProblem, modelFiles, type ModelFile, type ModelFiles } from './model-files.js';

export interface NamedWish {
  readonly serializedFile?: string;
  readonly modelFile?: string;
  /** Separated by commas. */
  readonly extraFiles?: string;
  readonly requirementsFile?: string;
  readonly configFile?: string;
}

/** Fields of the manifest's `model`, by the flag of their file. */
const SINGLE = {
  serializedFile: '--serialized-file',
  modelFile: '--model-file',
  requirementsFile: '--requirements-file',
  configFile: '--config-file',
} as const satisfies Partial<Record<keyof NamedWish, string>>;

export interface NamedFiles extends ModelFiles {
  /** Names in the archive, by field of the manifest's `model`. */
  readonly fields: Readonly<Record<string, string>>;
}

/** `known`: files that are packed anyway; `leaving`: as for `modelFiles`. Rejects with ArchiverProblem. */
export async function namedFiles(
  wish: NamedWish,
  known: readonly ModelFile[],
  leaving: string,
  cwd: string,
): Promise<NamedFiles> {
  const files: ModelFile[] = [];
  const leftOut: string[] = [];
  const fields: Record<string, string> = {};
  for (const [field, flag] of Object.entries(SINGLE)) {
    const given = wish[field as keyof typeof SINGLE];
    if (given === undefined) continue;
    const file = await fileAt(resolve(cwd, given), `${flag} ${given}`);
    const same = [...known, ...files].find(({ path }) => path === file.path);
    if (same === undefined) files.push(file);
    fields[field] = same?.name ?? file.name;
  }
  for (const given of wish.extraFiles?.split(',').map((one) => one.trim()) ?? []) {
    const path = resolve(cwd, given);
    if (isFolder(path)) {
      const inside = await modelFiles(await realpath(path), leaving);
      files.push(...inside.files);
      leftOut.push(...inside.leftOut);
    } else files.push(await fileAt(path, `--extra-files ${given}`));
  }
  return { files: files.filter(({ path }) => known.every((other) => other.path !== path)), leftOut, fields };
}

/** A handler outside a model's folder: its file, and the handler as the manifest names it. Rejects with ArchiverProblem. */
export async function handlerFile(
  handler: string,
  cwd: string,
): Promise<{ readonly file: ModelFile; readonly handler: string }> {
  const [path = '', ...rest] = handler.split(':');
  const candidates = [path, ...EXTENSIONS.entries.map((extension) => path + extension)];
  const found = candidates.map((one) => resolve(cwd, one)).find(isEntryAt);
  if (found === undefined) throw new ArchiverProblem(noHandler(handler, path));
  const file = await fileAt(found, `--handler ${handler}`);
  return { file, handler: [file.name, ...rest].join(':') };
}

function noHandler(handler: string, path: string): string {
  if (BUILT_IN.includes(path))
    return `--handler ${handler}: the built-in handlers of TorchServe are not included; give a file with a class below BaseHandler.`;
  return `--handler ${handler}: there is no such file; give its path, or its folder as --model-path.`;
}

const BUILT_IN: readonly string[] = [
  'image_classifier',
  'image_segmenter',
  'object_detector',
  'text_classifier',
];

async function fileAt(path: string, flag: string): Promise<ModelFile> {
  const found = await stat(path).catch(() => null);
  if (found?.isFile() !== true) throw new ArchiverProblem(`${flag}: there is no such file.`);
  const { size: bytes, mode, mtime: changedAt } = found;
  return { name: basename(path), path: await realpath(path), bytes, mode, changedAt };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isEntryAt(path: string): boolean {
  return (
    EXTENSIONS.entries.includes(extname(path)) && statSync(path, { throwIfNoEntry: false })?.isFile() === true
  );
}
