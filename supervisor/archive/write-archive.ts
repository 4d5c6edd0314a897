/** Writes a model in one of three forms. The path must not exist; after a failure the caller removes it. */
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { MANIFEST_FILE } from '../store/manifest.js';
import type { ModelFile } from './model-files.js';

export interface Content {
  readonly files: readonly ModelFile[];
  /** Text of the manifest. */
  readonly manifest: string;
}

const READABLE = 0o644;

/** Writes a `.mar`, which is a zip. */
export async function writeZip(path: string, { files, manifest }: Content, compress: boolean): Promise<void> {
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
export async function writeTar(path: string, content: Content, name: string): Promise<void> {
  await pipeline(Readable.from(tarOf(content, name)), createGzip(), createWriteStream(path, { flags: 'wx' }));
}

/** Writes a folder. */
export async function writeFolder(path: string, { files, manifest }: Content): Promise<void> {
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
