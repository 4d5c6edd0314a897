/** Runtime of ONNX models without code: Node with our own worker and the user's onnxruntime-node. */
import { extname } from 'node:path';
import { configError } from '../../../protocol/errors.js';
import { WORKER_ENTRY } from '../node/node.js';
import type { AppSetting, AppSpec, Runtime, WorkerProgram } from '../runtime.js';
import { findOnnxruntime, type FoundOnnxruntime, type SearchedPlaces } from './find-onnxruntime.js';
import { findOptimized } from './optimized/find-optimized.js';
import { OPTIMIZED_FOLDER } from './optimized/optimized-files.js';
import { optimizeAdvice } from './optimized/optimize-advice.js';
import { onnxSources } from './onnx-sources.js';
import { ownPlatform, problemOfPlatform } from './platform.js';
import { unreadConfig } from './unread-config.js';

const EXTENSIONS = ['.onnx'];

export const onnx: Runtime = {
  names: [],
  // Beside code such a file is data: it is no entry, and not watched.
  extensions: { served: EXTENSIONS, defaults: [], entries: [], alone: EXTENSIONS },
  sources: null,
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
  const { providers, workers } = resolved.options;
  const found = await findOptimized(app, version, process.env, isUnpacked);
  return {
    command: [process.execPath, WORKER_ENTRY], // the frame `start` names the model
    env: {
      BANANA_ONNXRUNTIME: main,
      BANANA_PROVIDERS: providers ?? '',
      BANANA_OPTIMIZED: found.graph === null ? '' : JSON.stringify(found),
    },
    cwd: null,
    label: 'onnx',
    mayWait: true,
    interpreter: null,
    threadVariables: [], // onnxruntime reads none; the worker sets its threads
    watches: [app],
    isSingleFile: true,
    hasCode: false,
    sources: onnxSources,
    batchCure:
      'give the free first dimension of every input and output one name, which no other dimension has; if the model only lacks such names, set batchSize for this model alone',
    warnings: [...unreadConfig(app), ...optimizeAdvice(app, found, providers, workers)],
  };
}

/** @throws SERVE_CONFIG if onnxruntime-node cannot be there, or is not installed, with what to do */
export function usableOnnxruntime(model: string, places: SearchedPlaces): FoundOnnxruntime {
  const problem = problemOfPlatform(ownPlatform());
  if (problem !== null) throw configError(`${model}: ${problem}`);
  return findOnnxruntime(model, places);
}
