/** Writes an archive of a model's folder, as Multi Model Server's archiver does. */
import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { realpath, rename, rm } from 'node:fs/promises';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { runtimeNameOf, USUAL_RUNTIME_NAME } from '../runtimes/index.js';
import { ArchiveProblem } from '../store/archives/archive-problem.js';
import { EntryNames } from '../store/archives/entry-names.js';
import { entryOfFolder } from '../store/entry-file.js';
import { MANIFEST_FILE } from '../store/manifest.js';
import { modelFiles } from './model-files.js';
import { writeFolder, writeTar, writeZip, type Content } from './write-archive.js';

export const ARCHIVE_FORMATS = ['default', 'tgz', 'no-archive'] as const;
export type ArchiveFormat = (typeof ARCHIVE_FORMATS)[number];

export interface ArchiveWish {
  readonly modelName: string;
  /** The folder of the model. */
  readonly modelPath: string;
  readonly handler: string;
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

/** The archive cannot be written; the message has the reason and a remedy. */
export class ArchiverProblem extends Error {}

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const VERSIONS = { modelServerVersion: '1.0', implementationVersion: '1.0', specificationVersion: '1.0' };

/** Paths are relative to `cwd`. Rejects with ArchiverProblem, or with the system's errors, and then leaves nothing behind. */
export async function archiveModel(wish: ArchiveWish, cwd: string): Promise<WrittenArchive> {
  const { modelName, handler, archiveFormat, force } = wish;
  if (!NAME.test(modelName))
    throw new ArchiverProblem(
      `--model-name ${modelName}: a name begins with a letter or a digit, and letters, digits, _ - and . follow.`,
    );
  const folder = await folderAt(wish.modelPath, '--model-path', cwd);
  const path = join(
    await folderAt(wish.exportPath, '--export-path', cwd),
    fileName(modelName, archiveFormat),
  );
  refuseTaken(path, folder, wish, cwd);
  const { files, leftOut } = await modelFiles(folder, path);
  refuseInvalidNames(files.map(({ name }) => name));
  const entry = await entryOfFolder({ folder, root: '/', stem: modelName }, { url: '', ...wish });
  const runtime = wish.runtime ?? runtimeNameOf(extname(entry.app)) ?? USUAL_RUNTIME_NAME;
  const manifest = { ...VERSIONS, runtime, model: { modelName, handler } };
  const made = { [MANIFEST_FILE]: `${JSON.stringify(manifest, null, 2)}\n` };
  await writeInPlace(path, force, (beside) => write(archiveFormat, beside, { files, made }, modelName));
  const missing = existsSync(entry.app) ? [] : [`no file of the model is the handler ${handler}`];
  const warnings = [
    ...missing,
    ...leftOut.map((name) => `${name} is neither a file nor a folder, and is left out`),
  ];
  return { path, files: files.length, warnings };
}

function fileName(modelName: string, format: ArchiveFormat): string {
  return { default: `${modelName}.mar`, tgz: `${modelName}.tar.gz`, 'no-archive': modelName }[format];
}

async function folderAt(given: string, flag: string, cwd: string): Promise<string> {
  const path = resolve(cwd, given);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return realpath(path);
  throw new ArchiverProblem(`${flag} ${given}: there is no such folder.`);
}

function refuseTaken(path: string, folder: string, { force }: ArchiveWish, cwd: string): void {
  const shown = relative(cwd, path);
  if (path === folder || !relative(path, folder).startsWith('..'))
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
  return format === 'default' ? writeZip(path, content) : writeFolder(path, content);
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
