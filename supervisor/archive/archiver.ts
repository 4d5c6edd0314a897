/** Writes an archive of a model's folder, as Multi Model Server's archiver does. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { realpath, rename, rm } from 'node:fs/promises';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { CommandProblem } from '../command/own-command.js';
import { MODEL_NAME_RULE, isModelName } from '../options/model-name.js';
import { runtimeNameOf, USUAL_RUNTIME_NAME } from '../runtimes/index.js';
import { ArchiveProblem, EntryNames } from '../store/archives/archive-entry.js';
import { MANIFEST_FILE } from '../store/manifest.js';
import { findFiles, isFolder, type ArchiveWish } from './model-files.js';
import { writeFolder, writeTar, writeZip, type Content } from './write-archive.js';

export interface WrittenArchive {
  /** Absolute path. */
  readonly path: string;
  /** Number of files of the model in the archive. */
  readonly files: number;
  readonly warnings: readonly string[];
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const VERSIONS = { modelServerVersion: '1.0', implementationVersion: '1.0', specificationVersion: '1.0' };

/** Paths are relative to `cwd`. Rejects with CommandProblem, or with the system's errors, and then leaves nothing behind. */
export async function archiveModel(wish: ArchiveWish, cwd: string): Promise<WrittenArchive> {
  const { modelName, archiveFormat, force } = wish;
  if (!NAME.test(modelName))
    throw new CommandProblem(
      `--model-name ${modelName}: a name must begin with a letter or a digit, followed by letters, digits, _ - and .`,
    );
  if (wish.version !== undefined && !isModelName(wish.version))
    throw new CommandProblem(
      `--version ${wish.version as string}: a version must consist of ${MODEL_NAME_RULE}.`,
    );
  const path = join(
    await folderAt(wish.exportPath, '--export-path', cwd),
    fileName(modelName, archiveFormat),
  );
  const folder = wish.modelPath === undefined ? null : await folderAt(wish.modelPath, '--model-path', cwd);
  refuseTaken(path, folder, wish, cwd);
  const { files, leftOut, handler, entry, fields } = await findFiles(wish, folder, path, cwd);
  refuseInvalidNames(files.map(({ name }) => name));
  const runtime = wish.runtime ?? runtimeNameOf(extname(entry)) ?? USUAL_RUNTIME_NAME;
  const version = wish.version === undefined ? {} : { modelVersion: wish.version };
  const manifest = { ...VERSIONS, runtime, model: { modelName, handler, ...version, ...fields } };
  const content = { files, manifest: `${JSON.stringify(manifest, null, 2)}\n` };
  await writeInPlace(path, force, (beside) => write(archiveFormat, beside, content, modelName));
  const missing = existsSync(entry) ? [] : [`no file of the model is the handler ${handler}`];
  const warnings = [
    ...missing,
    ...leftOut.map((name) => `${name} is neither a file nor a folder, and is left out`),
  ];
  return { path, files: files.length, warnings };
}

function fileName(modelName: string, format: ArchiveWish['archiveFormat']): string {
  const zip = `${modelName}.mar`;
  return { default: zip, 'zip-store': zip, tgz: `${modelName}.tar.gz`, 'no-archive': modelName }[format];
}

async function folderAt(given: string, flag: string, cwd: string): Promise<string> {
  const path = resolve(cwd, given);
  if (isFolder(path)) return realpath(path);
  throw new CommandProblem(`${flag} ${given}: there is no such folder.`);
}

function refuseTaken(path: string, folder: string | null, { force }: ArchiveWish, cwd: string): void {
  const shown = relative(cwd, path);
  if (folder !== null && !relative(path, folder).startsWith('..'))
    throw new CommandProblem(`${shown} would overwrite the model itself: choose another --export-path.`);
  if (existsSync(path) && !force)
    throw new CommandProblem(
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
    throw new CommandProblem(`the archive would not load: ${thrown.message}`);
  }
}

function write(
  format: ArchiveWish['archiveFormat'],
  path: string,
  content: Content,
  modelName: string,
): Promise<void> {
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
