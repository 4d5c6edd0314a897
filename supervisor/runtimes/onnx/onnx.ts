/** Runtime of ONNX models without code: Node with our own worker and the user's onnxruntime-node. */
import { existsSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import type { Sources } from '../../watch/file-tree.js';
import { WORKER_ENTRY } from '../node.js';
import type { AppSetting, AppSpec, Runtime, WorkerProgram } from '../runtime.js';
import { findTokenizers, usableOnnxruntime } from './find-onnxruntime.js';
import { findOptimized, optimizeAdvice } from './optimized/find-optimized.js';
import { OPTIMIZED_FOLDER } from './optimized/optimized-files.js';

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

/** One warning that Triton's configuration has no effect, if the model lies in a repository of Triton (`name/1/model.onnx`) with a `config.pbtxt`. */
export function unreadConfig(model: string): string[] {
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
