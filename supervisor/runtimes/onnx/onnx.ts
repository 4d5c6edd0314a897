/** Runtime of ONNX models without code: Node with our own worker and the user's onnxruntime-node. */
import { extname } from 'node:path';
import { configError } from '../../../protocol/errors.js';
import { WORKER_ENTRY } from '../node/node.js';
import type { AppSetting, AppSpec, Runtime, WorkerProgram } from '../runtime.js';
import { findOnnxruntime } from './find-onnxruntime.js';
import { onnxSources } from './onnx-sources.js';
import { ownPlatform, problemOfPlatform } from './platform.js';
import { unreadConfig } from './unread-config.js';

const EXTENSIONS = ['.onnx'];

export const onnx: Runtime = {
  names: [],
  // Beside code such a file is data: it is no entry, and not watched.
  extensions: { served: EXTENSIONS, defaults: [], entries: [], alone: EXTENSIONS },
  sources: null,
  leftovers: [],
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  // What it throws rejects the promise.
  prepare: (spec, setting) => new Promise((resolve) => resolve(programOf(spec, setting))),
};

/** @throws SERVE_CONFIG */
function programOf({ app }: AppSpec, { resolved, isUnpacked, startFolder }: AppSetting): WorkerProgram {
  const problem = problemOfPlatform(ownPlatform());
  if (problem !== null) throw configError(`${app}: ${problem}`);
  const onnxruntime = findOnnxruntime(app, { isUnpacked, startFolder });
  return {
    command: [process.execPath, WORKER_ENTRY], // the frame `start` names the model
    env: { BANANA_ONNXRUNTIME: onnxruntime, BANANA_PROVIDERS: resolved.options.providers ?? '' },
    cwd: null,
    label: 'onnx',
    interpreter: null,
    threadVariables: [], // onnxruntime reads none; the worker sets its threads
    watches: [app],
    isSingleFile: true,
    sources: onnxSources,
    batchCure: 'export the model with a free first dimension in every input and output',
    warnings: unreadConfig(app),
  };
}
