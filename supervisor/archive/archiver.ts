/**
 * The archiver, which writes a model in the forms of Multi Model Server's: `banana-serve archive …`, or `model-archiver …`
 * for existing scripts.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, createReadStream, createWriteStream } from 'node:fs';
import { realpath, rename, rm, chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { CommandProblem, runCommand } from '../command/own-command.js';
import { MODEL_NAME_RULE, isModelName } from '../options/model-name.js';
import { RUNTIME_NAMES, runtimeNameOf, USUAL_RUNTIME_NAME } from '../runtimes/index.js';
import { ArchiveProblem, EntryNames } from '../store/archives/archive-entry.js';
import { MANIFEST_FILE } from '../store/manifest.js';
import { findFiles, isFolder, type ArchiveWish, ARCHIVE_FORMATS, type ModelFile } from './model-files.js';
import { Command, Option } from 'commander';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

/** `args`: arguments without the program's name. Resolves with the exit code. */
export function runArchiver(program: string, args: readonly string[]): Promise<number> {
  const command = describeArchiver(program);
  return runCommand(command, args, async (say) => {
    const { convert = false, ...wish } = command.opts<ArchiveWish & { convert?: boolean | string }>();
    if (convert === true)
      say('--convert: files of models go into the archive as they are; nothing is converted');
    const settings = typeof convert === 'string' ? { configFile: convert } : {};
    await archiveModel({ ...settings, ...wish }, process.cwd(), say);
  });
}

function describeArchiver(program: string): Command {
  return new Command(program)
    .description('Writes an archive of a model, for a model store.')
    .requiredOption('--model-name <name>', 'Name of the model, and of the archive.')
    .option(
      '--model-path <folder>',
      'Folder with the files of the model; without it, the flags below name them.',
    )
    .requiredOption('--handler <handler>', 'file, file:function or file:Class that answers calls.')
    .option('--serialized-file <path>', 'File of the weights.')
    .option('--model-file <path>', "File of the model's architecture.")
    .option(
      '--extra-files <paths>',
      'Further files, and folders whose content is packed; separated by commas.',
    )
    .option('-r, --requirements-file <path>', 'Packed, not installed.')
    .option('--config-file <path>', 'Settings that the handler finds as context.model_yaml_config.')
    .option('-v, --version <version>', "The model's version; default 1.0.")
    .addOption(
      new Option(
        '--runtime <runtime>',
        "The model's runtime; by default found by the handler's file.",
      ).choices(RUNTIME_NAMES),
    )
    .option('--export-path <folder>', 'Folder that the archive is written into.', '.')
    .addOption(
      new Option(
        '--archive-format <format>',
        'default: name.mar; zip-store: the same, not compressed; tgz: name.tar.gz; no-archive: a folder.',
      )
        .choices(ARCHIVE_FORMATS)
        .default('default'),
    )
    .option('-f, --force', 'Overwrite an existing archive.', false)
    .option(
      '-c, --convert [path]',
      'For existing scripts: nothing is converted. With a path, the same as --config-file.',
    );
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const VERSIONS = { modelServerVersion: '1.0', implementationVersion: '1.0', specificationVersion: '1.0' };

/** Rejects with CommandProblem, or with the system's errors, and then leaves nothing behind. */
async function archiveModel(wish: ArchiveWish, cwd: string, say: (text: string) => void): Promise<void> {
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
  if (!existsSync(entry)) say(`no file of the model is the handler ${handler}`);
  for (const name of leftOut) say(`${name} is neither a file nor a folder, and is left out`);
  process.stdout.write(`Wrote ${relative(cwd, path)}: the model ${modelName}, ${files.length} files.\n`);
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

interface Content {
  readonly files: readonly ModelFile[];
  /** Text of the manifest. */
  readonly manifest: string;
}

const READABLE = 0o644;

/** Writes a `.mar`, which is a zip. */
async function writeZip(path: string, { files, manifest }: Content, compress: boolean): Promise<void> {
  const { ZipFile } = await import('yazl');
  const zip = new ZipFile();
  const failed = once(zip, 'error').then(([error]) => Promise.reject(error as Error));
  zip.addBuffer(Buffer.from(manifest), MANIFEST_FILE, { mode: 0o100644, compress });
  for (const { path: from, name, mode, changedAt } of files)
    zip.addFile(from, name, { mode, mtime: changedAt, compress });
  zip.end();
  await Promise.race([pipeline(zip.outputStream, createWriteStream(path, { flags: 'wx' })), failed]);
}

/** Writes a `.tar.gz` with everything in the folder `name`. */
async function writeTar(path: string, content: Content, name: string): Promise<void> {
  await pipeline(Readable.from(tarOf(content, name)), createGzip(), createWriteStream(path, { flags: 'wx' }));
}

/** Writes a folder. */
async function writeFolder(path: string, { files, manifest }: Content): Promise<void> {
  await mkdir(path);
  await mkdir(join(path, dirname(MANIFEST_FILE)));
  await writeFile(join(path, MANIFEST_FILE), manifest);
  for (const { path: from, name, mode } of files) {
    const to = join(path, name);
    await mkdir(dirname(to), { recursive: true });
    await copyFile(from, to);
    await chmod(to, permissions(mode));
  }
}

const BLOCK_BYTES = 512;

/** Replaces the library's packer, which writes hard links for files with several names; no server accepts these. */
async function* tarOf({ files, manifest }: Content, folder: string): AsyncGenerator<Buffer> {
  const text = Buffer.from(manifest);
  yield await headOf(`${folder}/${MANIFEST_FILE}`, text.length, READABLE, new Date());
  yield text;
  yield padding(text.length);
  for (const { path, name, bytes, mode, changedAt } of files) {
    yield await headOf(`${folder}/${name}`, bytes, mode, changedAt);
    let read = 0;
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      read += chunk.length;
      yield chunk;
    }
    if (read !== bytes) throw new Error(`${path} was changed while it was packed`);
    yield padding(bytes);
  }
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

async function headOf(path: string, size: number, mode: number, mtime: Date): Promise<Buffer> {
  const { Header, Pax } = await import('tar');
  const facts = { path, size, mode: permissions(mode), mtime, type: 'File' as const };
  const block = Buffer.alloc(BLOCK_BYTES);
  const isTooLong = new Header(facts).encode(block, 0);
  return isTooLong ? Buffer.concat([new Pax({ path, size }).encode(), block]) : block;
}

function padding(bytes: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

function permissions(mode: number): number {
  return (mode & 0o111) === 0 ? READABLE : 0o755;
}
