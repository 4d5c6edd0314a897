/** Runtime of ONNX models without code: Node with our own worker and the user's onnxruntime-node. */
import { extname } from 'node:path';
import { configError } from '../../../protocol/errors.js';
import { WORKER_ENTRY } from '../node/node.js';
import type { Runtime } from '../runtime.js';
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
  prepare: ({ app }, { resolved, isUnpacked, startFolder }) => {
    const problem = problemOfPlatform(ownPlatform());
    if (problem !== null) return Promise.reject(configError(`${app}: ${problem}`));
    const found = findOnnxruntime(app, { isUnpacked, startFolder });
    const { providers } = resolved.options;
    return Promise.resolve({
      command: [process.execPath, WORKER_ENTRY], // the frame `start` names the model
      env: { BANANA_ONNXRUNTIME: found.path, BANANA_PROVIDERS: providers ?? '' },
      cwd: null,
      label: 'onnx',
      interpreter: null,
      threadVariables: [], // onnxruntime reads none; the worker sets its threads
      watches: [app],
      isSingleFile: true,
      sources: onnxSources,
      batchCure: 'export the model with a free first dimension in every input and output',
      warnings: unreadConfig(app),
    });
  },
};
