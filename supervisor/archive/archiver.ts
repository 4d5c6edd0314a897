/** Writes an archive of a model's folder, as Multi Model Server's archiver does. */
import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { realpath, rename, rm } from 'node:fs/promises';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { MODEL_NAME_RULE, isModelName } from '../options/model-name.js';
import { runtimeNameOf, USUAL_RUNTIME_NAME } from '../runtimes/index.js';
import { ArchiveProblem } from '../store/archives/archive-entry.js';
import { EntryNames } from '../store/archives/entry-names.js';
import { entryOfFolder } from '../store/entry-file.js';
import { MANIFEST_FILE } from '../store/manifest.js';
import { ArchiverProblem, modelFiles } from './model-files.js';
import { handlerFile, namedFiles, type NamedFiles, type NamedWish } from './named-files.js';
import { writeFolder, writeTar, writeZip, type Content } from './write-archive.js';

export const ARCHIVE_FORMATS = ['default', 'zip-store', 'tgz', 'no-archive'] as const;
export type ArchiveFormat = (typeof ARCHIVE_FORMATS)[number];

export interface ArchiveWish extends NamedWish {
  readonly modelName: string;
  /** The folder of the model. Default: none; the flags of `torch-model-archiver` name its files. */
  readonly modelPath?: string;
  readonly handler: string;
  readonly version?: string;
  /** Default: found by the handler's file. */
  readonly runtime?: string;
  /** The folder that the archive is written into. */
  readonly exportPath: string;
  readonly archiveFormat: ArchiveFormat;
  /** Replaces an existing archive. */
  readonly force: boolean;
}

export interface WrittenArchive {
  /** Absolute path. */
  readonly path: string;
  /** Number of files of the model in the archive. */
  readonly files: number;
  readonly warnings: readonly string[];
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const VERSIONS = { modelServerVersion: '1.0', implementationVersion: '1.0', specificationVersion: '1.0' };

/** Paths are relative to `cwd`. Rejects with ArchiverProblem, or with the system's errors, and then leaves nothing behind. */
export async function archiveModel(wish: ArchiveWish, cwd: string): Promise<WrittenArchive> {
  const { modelName, archiveFormat, force } = wish;
  if (!NAME.test(modelName))
    throw new ArchiverProblem(
      `--model-name ${modelName}: a name must begin with a letter or a digit, followed by letters, digits, _ - and .`,
    );
  const { version: given = '1.0' } = wish;
  const isVersion: boolean = isModelName(given);
  if (!isVersion)
    throw new ArchiverProblem(`--version ${given}: a version must consist of ${MODEL_NAME_RULE}.`);
  const path = join(
    await folderAt(wish.exportPath, '--export-path', cwd),
    fileName(modelName, archiveFormat),
  );
  const { files, leftOut, handler, entry, fields } = await gathered(wish, path, cwd);
  refuseInvalidNames(files.map(({ name }) => name));
  const runtime = wish.runtime ?? runtimeNameOf(extname(entry)) ?? USUAL_RUNTIME_NAME;
  const version = wish.version === undefined ? {} : { modelVersion: wish.version };
  const manifest = { ...VERSIONS, runtime, model: { modelName, handler, ...version, ...fields } };
  const made = { [MANIFEST_FILE]: `${JSON.stringify(manifest, null, 2)}\n` };
  await writeInPlace(path, force, (beside) => write(archiveFormat, beside, { files, made }, modelName));
  const missing = existsSync(entry) ? [] : [`no file of the model is the handler ${handler}`];
  const warnings = [
    ...missing,
    ...leftOut.map((name) => `${name} is neither a file nor a folder, and is left out`),
  ];
  return { path, files: files.length, warnings };
}

interface Gathered extends NamedFiles {
  /** As the manifest names it. */
  readonly handler: string;
  /** Absolute path of the handler's file, which may not exist. */
  readonly entry: string;
}

async function gathered(wish: ArchiveWish, path: string, cwd: string): Promise<Gathered> {
  const { modelPath, modelName, handler } = wish;
  if (modelPath === undefined) {
    refuseTaken(path, null, wish, cwd);
    const own = await handlerFile(handler, cwd);
    const { files, leftOut, fields } = await namedFiles(wish, [own.file], path, cwd);
    return { files: [own.file, ...files], leftOut, fields, handler: own.handler, entry: own.file.path };
  }
  const folder = await folderAt(modelPath, '--model-path', cwd);
  refuseTaken(path, folder, wish, cwd);
  const model = await modelFiles(folder, path);
  const named = await namedFiles(wish, model.files, path, cwd);
  const { app } = await entryOfFolder({ folder, root: '/', stem: modelName }, { url: '', ...wish });
  return {
    files: [...model.files, ...named.files],
    leftOut: [...model.leftOut, ...named.leftOut],
    fields: named.fields,
    handler,
    entry: app,
  };
}

function fileName(modelName: string, format: ArchiveFormat): string {
  const zip = `${modelName}.mar`;
  return { default: zip, 'zip-store': zip, tgz: `${modelName}.tar.gz`, 'no-archive': modelName }[format];
}

async function folderAt(given: string, flag: string, cwd: string): Promise<string> {
  const path = resolve(cwd, given);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return realpath(path);
  throw new ArchiverProblem(`${flag} ${given}: there is no such folder.`);
}

function refuseTaken(path: string, folder: string | null, { force }: ArchiveWish, cwd: string): void {
  const shown = relative(cwd, path);
  if (folder !== null && !relative(path, folder).startsWith('..'))
    throw new ArchiverProblem(`${shown} would overwrite the model itself: choose another --export-path.`);
  if (existsSync(path) && !force)
    throw new ArchiverProblem(
      `${shown} exists already. Give --force to overwrite it, or another --export-path.`,
    );
}

/** Refuses names that a server would refuse. */
function refuseInvalidNames(files: readonly string[]): void {
  const names = new EntryNames();
  try {
    for (const name of [MANIFEST_FILE, ...files]) names.add(name, false);
  } catch (thrown) {
    if (!(thrown instanceof ArchiveProblem)) throw thrown;
    throw new ArchiverProblem(`the archive would not load: ${thrown.message}`);
  }
}

function write(format: ArchiveFormat, path: string, content: Content, modelName: string): Promise<void> {
  if (format === 'tgz') return writeTar(path, content, modelName);
  if (format === 'no-archive') return writeFolder(path, content);
  return writeZip(path, content, format === 'default');
}

/** Writes to a temporary name first, so that the archive is never seen half written. */
async function writeInPlace(
  path: string,
  force: boolean,
  writeTo: (beside: string) => Promise<void>,
): Promise<void> {
  const beside = join(dirname(path), `.archive-${randomBytes(8).toString('hex')}`);
  try {
    await writeTo(beside);
    if (force) await rm(path, { recursive: true, force: true });
    await rename(beside, path);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}
