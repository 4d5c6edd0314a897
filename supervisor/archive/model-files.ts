/**
 * Finds the files that go into a model's archive, as Multi Model Server's archiver and `torch-model-archiver` do: those of
 * the model's folder, or the handler's file without one; and files that flags name, which lie at the top of the archive.
 */
import { statSync } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, extname, join, resolve } from 'node:path';
import { CommandProblem } from '../command/own-command.js';
import { EXTENSIONS, isLeftover } from '../runtimes/index.js';
import { entryOfFolder } from '../store/entry-file.js';

export const ARCHIVE_FORMATS = ['default', 'zip-store', 'tgz', 'no-archive'] as const;

export interface ArchiveWish {
  readonly modelName: string;
  /** The folder of the model. Default: none; the flags of `torch-model-archiver` name its files. */
  readonly modelPath?: string;
  readonly handler: string;
  readonly version?: string;
  /** Default: found by the handler's file. */
  readonly runtime?: string;
  readonly serializedFile?: string;
  readonly modelFile?: string;
  /** Separated by commas. */
  readonly extraFiles?: string;
  readonly requirementsFile?: string;
  readonly configFile?: string;
  /** The folder that the archive is written into. */
  readonly exportPath: string;
  readonly archiveFormat: (typeof ARCHIVE_FORMATS)[number];
  /** Replaces an existing archive. */
  readonly force: boolean;
}

export interface ModelFile {
  /** Path in the archive, with slashes. */
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  readonly mode: number;
  readonly changedAt: Date;
}

/** Fields of the manifest's `model`, by the flag of their file. */
const SINGLE = {
  serializedFile: '--serialized-file',
  modelFile: '--model-file',
  requirementsFile: '--requirements-file',
  configFile: '--config-file',
} as const satisfies Partial<Record<keyof ArchiveWish, string>>;

/**
 * `folder`: the model's, if it has one. `leaving`: the archive, which never belongs to it. Rejects with CommandProblem.
 *
 * Resolves with the files; `leftOut`, the names of entries that are neither file nor folder, and of links to folders, which
 * might form a cycle; `fields`, names in the archive by field of the manifest's `model`; `handler`, as the manifest names it;
 * and `entry`, the absolute path of the handler's file, which may not exist.
 */
export async function findFiles(wish: ArchiveWish, folder: string | null, leaving: string, cwd: string) {
  const files: ModelFile[] = [];
  const leftOut: string[] = [];
  const fields: Record<string, string> = {};
  /** Returns the name of a file in the archive; a file is packed once. */
  const add = (file: ModelFile): string => {
    const same = files.find(({ path }) => path === file.path);
    if (same === undefined) files.push(file);
    return (same ?? file).name;
  };
  const addFolder = async (path: string): Promise<void> => {
    for (const file of await filesIn(path, leaving, leftOut)) add(file);
  };
  let handler = wish.handler;
  let entry: string;
  if (folder === null) {
    const [path = '', ...rest] = handler.split(':');
    entry = handlerFile(handler, path, cwd);
    handler = [add(await fileAt(entry, `--handler ${handler}`)), ...rest].join(':');
  } else {
    await addFolder(folder);
    const found = await entryOfFolder({ folder, root: '/', stem: wish.modelName }, { url: '', ...wish });
    entry = found.app;
  }
  for (const [field, flag] of Object.entries(SINGLE)) {
    const given = wish[field as keyof typeof SINGLE];
    if (given !== undefined) fields[field] = add(await fileAt(resolve(cwd, given), `${flag} ${given}`));
  }
  for (const given of wish.extraFiles?.split(',').map((one) => one.trim()) ?? []) {
    const path = resolve(cwd, given);
    if (isFolder(path)) await addFolder(await realpath(path));
    else add(await fileAt(path, `--extra-files ${given}`));
  }
  return { files, leftOut, fields, handler, entry };
}

/** The files of a folder, sorted by name. */
async function filesIn(folder: string, leaving: string, leftOut: string[]): Promise<ModelFile[]> {
  const files: ModelFile[] = [];
  const walk = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
      const name = below === '' ? entry.name : `${below}/${entry.name}`;
      const path = join(folder, name);
      if (path === leaving) continue;
      if (entry.isDirectory()) {
        if (!isFolderOfOthers(entry.name)) await walk(name);
        continue;
      }
      const found = await stat(path); // follows links
      if (!found.isFile()) leftOut.push(name);
      else if (!isFileOfOthers(entry.name))
        files.push({ name, path, bytes: found.size, mode: found.mode, changedAt: found.mtime });
    }
  };
  await walk('');
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function isFolderOfOthers(name: string): boolean {
  return name.startsWith('.') || name === '__MACOSX' || isLeftover(name);
}

/** An old manifest is left out, because a new one is written. */
function isFileOfOthers(name: string): boolean {
  return name === 'MANIFEST.json' || /\.(?:DS_Store|mar)$/.test(name) || isLeftover(name);
}

/** The file of a handler outside a model's folder. @throws CommandProblem */
function handlerFile(handler: string, path: string, cwd: string): string {
  const candidates = [path, ...EXTENSIONS.entries.map((extension) => path + extension)];
  const found = candidates
    .map((one) => resolve(cwd, one))
    .find((one) => EXTENSIONS.entries.includes(extname(one)) && isFile(one));
  if (found !== undefined) return found;
  if (BUILT_IN.includes(path))
    throw new CommandProblem(
      `--handler ${handler}: the built-in handlers of TorchServe are not included; give a file with a class below BaseHandler.`,
    );
  throw new CommandProblem(
    `--handler ${handler}: there is no such file; give its path, or its folder as --model-path.`,
  );
}

const BUILT_IN: readonly string[] = [
  'image_classifier',
  'image_segmenter',
  'object_detector',
  'text_classifier',
];

async function fileAt(path: string, flag: string): Promise<ModelFile> {
  if (!isFile(path)) throw new CommandProblem(`${flag}: there is no such file.`);
  const { size: bytes, mode, mtime: changedAt } = await stat(path);
  return { name: basename(path), path: await realpath(path), bytes, mode, changedAt };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
