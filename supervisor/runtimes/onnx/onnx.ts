/** Runtime of ONNX models without code: Node with our own worker and the user's onnxruntime-node. */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import type { Sources } from '../../watch/file-tree.js';
import { WORKER_ENTRY } from '../node.js';
import type { AppSetting, AppSpec, Runtime, WorkerProgram } from '../runtime.js';
import { findTokenizers, usableOnnxruntime } from './find-onnxruntime.js';
import {
  OPTIMIZED_FOLDER,
  folderNameOf,
  GRAPH,
  graphsIn,
  keyOf,
  keyOfFolderName,
  placesOf,
  problemOfFiles,
  type OptimizedKey,
  modelFacts,
  type FileFacts,
} from './optimized/optimized-files.js';
import { externalLocations } from './optimized/external-files.js';

const EXTENSIONS = ['.onnx'];

export const onnx: Runtime = {
  alone: EXTENSIONS, // beside code such a file is data: it is no entry, and not watched
  leftovers: [OPTIMIZED_FOLDER],
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  prepare: programOf,
};

/** @throws SERVE_CONFIG */
async function programOf(
  { app }: AppSpec,
  { resolved, isUnpacked, startFolder }: AppSetting,
): Promise<WorkerProgram> {
  const { main, version } = usableOnnxruntime(app, { isUnpacked, startFolder });
  const { providers, workers, task } = resolved.options;
  const found = await findOptimized(app, version, process.env, isUnpacked);
  return {
    command: [process.execPath, WORKER_ENTRY], // the frame `start` names the model
    env: {
      BANANA_ONNXRUNTIME: main,
      BANANA_PROVIDERS: providers ?? '',
      BANANA_OPTIMIZED: found.graph === null ? '' : JSON.stringify(found),
      BANANA_TOKENIZERS: task === null ? '' : findTokenizers(app, task, { isUnpacked, startFolder }),
    },
    label: 'onnx',
    mayWait: true,
    values: 'msgpack-values',
    watches: [app],
    isSingleFile: true,
    hasCode: false,
    sources: onnxSources,
    batchCure:
      'give the free first dimension of every input and output one name, which no other dimension has; if the model only lacks such names, set batchSize for this model alone',
    warnings: [...unreadConfig(app), ...optimizeAdvice(app, found, providers, workers)],
  };
}

/** A warning that `config.pbtxt` has no effect, if the model lies in a repository of Triton, as `name/1/model.onnx`, beside one. */
function unreadConfig(model: string): string[] {
  const version = dirname(model);
  const config = join(dirname(version), 'config.pbtxt');
  if (!/^\d+$/.test(basename(version)) || !existsSync(config)) return [];
  return [
    `${config} is not read: the model describes its inputs and outputs itself, and options set the rest`,
  ];
}

/** Finds the files beside a model that belong to it: its weights, if they are not in the model, and its example. */
export const onnxSources: Sources = {
  languages: ['ONNX'],
  extensions: ['.onnx'],
  foldersOfOthers: [],
  localImports: (file, text) => {
    const folder = dirname(file);
    const named = [...text.matchAll(LOCATION)].map(([, length = '', value = '']) =>
      cutToBytes(value, length.charCodeAt(0)),
    );
    return [...new Set([...named.map((name) => join(folder, name)), ...usualNames(file)])];
  },
};

/**
 * An entry of a tensor's external data in the protobuf, read as text: the key `location`, and its value after the length
 * in bytes. Bytes that are no text are replaced, but those around a path are ASCII.
 */
// eslint-disable-next-line no-control-regex -- the protobuf is binary
const LOCATION = /\n\x08location\x12([\x01-\x7f])([^\0-\x1f]{1,127})/g;

function cutToBytes(text: string, bytes: number): string {
  return Buffer.from(text).subarray(0, bytes).toString();
}

/** The names that exporters give to the weights (a large model is not read), and the name of the example. */
function usualNames(file: string): string[] {
  const stem = join(dirname(file), basename(file, extname(file)));
  return [`${file}.data`, `${file}_data`, `${stem}.data`, `${stem}.bin`, `${stem}.example.json`];
}

export interface FoundGraph {
  /** Path of the graph; null if the original is to be served. */
  readonly graph: string | null;
  /** The files of which it was made, as they were when they were compared. */
  readonly madeOf: readonly FileFacts[];
  /** Why the original is served although there are optimized graphs; null if none is there, or one is used. */
  readonly why: string | null;
}

const NONE: FoundGraph = { graph: null, madeOf: [], why: null };

/**
 * Finds the optimized graph of a model that `banana-serve optimize` has written; the server itself never writes one.
 * Reads model and graph whole, in another thread, but only where there are graphs. Never rejects.
 */
export async function findOptimized(
  model: string,
  onnxruntime: string,
  env: NodeJS.ProcessEnv,
  isUnpacked = false,
): Promise<FoundGraph> {
  const places = placesOf(model, env, isUnpacked).filter((place) => graphsIn(place).length > 0);
  const [beside] = places;
  if (beside === undefined) return NONE;
  try {
    const madeOf = await modelFacts(model);
    const key = keyOf(madeOf, onnxruntime);
    const name = folderNameOf(key);
    const place = places.find((one) => graphsIn(one).includes(name));
    // A cache has the graphs of other models, too.
    if (place === undefined)
      return beside === `${model}.optimized` ? { ...NONE, why: whyOther(beside, key) } : NONE;
    const folder = join(place, name);
    const problem = await problemOfFiles(folder);
    if (problem === null) return { graph: join(folder, GRAPH), madeOf, why: null };
    return { ...NONE, why: `${folder}: ${problem}. Remove it` };
  } catch (thrown) {
    return {
      ...NONE,
      why: `${beside} was not compared with the model: ${(thrown as Error).message}. Mend that`,
    };
  }
}

/** Names what the graphs in a place were made for, where it differs from what is here. */
function whyOther(place: string, key: OptimizedKey): string {
  const others = graphsIn(place).flatMap((name) => keyOfFolderName(name) ?? []);
  const same = others.filter(({ model }) => model === key.model);
  if (same.length === 0) return `${place} was made of another model than is there now`;
  const versions = same.filter(({ cpu }) => cpu === key.cpu).map(({ onnxruntime }) => onnxruntime);
  return versions.length === 0
    ? `${place} was made for another processor`
    : `${place} was made for onnxruntime-node ${versions.join(', ')}, and this is ${key.onnxruntime}`;
}

/** Weights above which it is worth telling that workers can share them. */
const LARGE_BYTES = 64 * 1024 * 1024;

/** Advice to log when the model is served: at most one line. `providers` and `workers`: the operator's, null if not given. */
export function optimizeAdvice(
  model: string,
  { graph, why }: FoundGraph,
  providers: string | null,
  workers: number | null,
): string[] {
  if (providers !== null && providers.toLowerCase() !== 'cpu') return [];
  const command = `banana-serve optimize ${model}`;
  if (why !== null) return [`${why}; the original is served. Run: ${command}`];
  const bytes = graph === null && (workers ?? 1) > 1 ? modelBytes(model) : 0;
  if (bytes <= LARGE_BYTES) return [];
  return [
    `each of ${workers} workers keeps its own copy of the weights of ${model}, ${Math.round(bytes / 1e6)} MB. They share one after: ${command}`,
  ];
}

/** The bytes of a model and of the files that hold its weights; those that are missing are told by the worker. */
function modelBytes(model: string): number {
  const files = [model, ...externalLocations(model).map((location) => join(dirname(model), location))];
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}
