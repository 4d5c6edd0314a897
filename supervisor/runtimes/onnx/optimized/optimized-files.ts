/**
 * Optimized graphs on disk. Each has a folder of its own, named by its key, that is never changed: processes map its
 * files. It lies in `m.onnx.optimized/` beside the model, or in the user's cache folder.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { FileFacts } from './digest-thread.js';

export type { FileFacts } from './digest-thread.js';

export const GRAPH = 'model.onnx';
export const WEIGHTS = 'weights.bin';
const RECORD = 'optimized.json';

/** Names of folders that `optimize` writes beside a model, which no archive needs. */
export const OPTIMIZED_FOLDER = /\.onnx\.optimized$/;

/** Lists the files of a folder with their digests. Written last, so a folder without it is not whole. */
interface OptimizedRecord {
  readonly files: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
}

/** The folders in which optimized graphs of this model may lie, in order of preference. */
export function placesOf(model: string, env: NodeJS.ProcessEnv, isUnpacked = false): string[] {
  return isUnpacked ? [cachePlace(env)] : [`${model}.optimized`, cachePlace(env)];
}

function cachePlace({ XDG_CACHE_HOME = '' }: NodeJS.ProcessEnv): string {
  return join(XDG_CACHE_HOME === '' ? join(homedir(), '.cache') : XDG_CACHE_HOME, 'banana-serve', 'onnx');
}

/** Names of the folders of graphs in a place, whole or not; empty if there is no such place. */
export function graphsIn(place: string): string[] {
  try {
    return readdirSync(place).filter((name) => !name.startsWith('.'));
  } catch {
    return [];
  }
}

/** The record of the files that now lie in a folder. */
export async function recordOf(folder: string): Promise<OptimizedRecord> {
  const names = [GRAPH, WEIGHTS].filter((name) => existsSync(join(folder, name)));
  const facts = await fileFacts(names.map((name) => join(folder, name)));
  const files = facts.map(({ bytes, sha256 }, i) => [names[i] as string, { bytes, sha256 }] as const);
  return { files: Object.fromEntries(files) };
}

export function recordPath(folder: string): string {
  return join(folder, RECORD);
}

/** Says what is wrong with the files of a folder, compared with its record; null if nothing is. */
export async function problemOfFiles(folder: string): Promise<string | null> {
  try {
    const written = JSON.parse(readFileSync(recordPath(folder), 'utf8')) as OptimizedRecord;
    const found = await recordOf(folder);
    const names = new Set([GRAPH, ...Object.keys(written.files)]);
    const damaged = [...names].find((name) => written.files[name]?.sha256 !== found.files[name]?.sha256);
    return damaged === undefined ? null : `${damaged} is damaged`;
  } catch (thrown) {
    return `it cannot be read: ${(thrown as Error).message}`;
  }
}

/** All that an optimized graph depends on: the model, onnxruntime, and the instructions of the processor. */
export interface OptimizedKey {
  /** Digest of the model and of its files of weights. */
  readonly model: string;
  /** Version of onnxruntime-node. */
  readonly onnxruntime: string;
  /** Digest of the instructions that the processor has: prepacked weights are laid out for them. */
  readonly cpu: string;
}

/** `facts`: the model first. */
export function keyOf(facts: readonly FileFacts[], onnxruntime: string): OptimizedKey {
  const [first] = facts;
  const folder = dirname(first?.path ?? '');
  const [model, ...weights] = facts.map(({ path, sha256 }) => `${relative(folder, path)} ${sha256}`);
  // Without the model's own name: a renamed model is the same one.
  const parts = [model?.split(' ').at(-1) ?? '', ...weights.sort()];
  return { model: shortDigest(parts.join('\n')), onnxruntime, cpu: shortDigest(cpuText()) };
}

/** The name of its folder. */
export function folderNameOf({ model, onnxruntime, cpu }: OptimizedKey): string {
  return `${model}-onnxruntime-${onnxruntime}-cpu-${cpu}`;
}

/** Null for a folder of another name. */
export function keyOfFolderName(name: string): OptimizedKey | null {
  const found = /^([0-9a-f]{16})-onnxruntime-(.+)-cpu-([0-9a-f]{16})$/.exec(name);
  if (found === null) return null;
  const [, model = '', onnxruntime = '', cpu = ''] = found;
  return { model, onnxruntime, cpu };
}

function shortDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** The flags of the first core; where the system does not list them, its model. */
function cpuText(): string {
  try {
    const text = readFileSync('/proc/cpuinfo', 'utf8');
    const flags = /^(?:flags|Features)\s*:(.*)$/m.exec(text)?.[1] ?? '';
    return flags.trim().split(/\s+/).sort().join(' ');
  } catch {
    return `${process.arch} ${cpus()[0]?.model ?? ''}`;
  }
}

/** The facts of a model and of the files that hold its weights. Rejects if one cannot be read. */
export function modelFacts(model: string): Promise<FileFacts[]> {
  return inThread([model], true);
}

/** Digests of files, taken in a thread of their own, because the front must go on answering. Rejects if one cannot be read. */
export function fileFacts(paths: readonly string[]): Promise<FileFacts[]> {
  return inThread(paths, false);
}

function inThread(paths: readonly string[], isModel: boolean): Promise<FileFacts[]> {
  const thread = new Worker(new URL('./digest-thread.js', import.meta.url), {
    workerData: { paths, isModel },
  });
  return new Promise((resolve, reject) => {
    thread.on('message', resolve);
    thread.on('error', reject);
  });
}
