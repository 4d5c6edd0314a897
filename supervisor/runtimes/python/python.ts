/** Runtime of apps in Python: the user's interpreter with our worker, which needs only the standard library. */
import { dirname, extname } from 'node:path';
import { sourceNameOf } from '../../options/resolve.js';
import { codeExtensions, type Runtime } from '../runtime.js';
import { findInterpreter } from './find-interpreter.js';
import { PYTHON_PATH } from './python-path.js';
import { pythonSources } from './python-sources.js';
import { stuckAt } from './stuck-at.js';

const WORKER_ENTRY = `${PYTHON_PATH}/banana_worker/__main__.py`;
const EXTENSIONS = ['.py'];

export const python: Runtime = {
  names: ['python', 'python2', 'python3'],
  extensions: codeExtensions(EXTENSIONS),
  sources: pythonSources,
  leftovers: [/^__pycache__$/, /\.pyc$/],
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  prepare: async ({ app }, { resolved, isUnpacked, ...setting }) => {
    const { path, version, warnings } = await findInterpreter(app, {
      given: resolved.options.python,
      givenAt: sourceNameOf(resolved, 'python'),
      appFolder: dirname(app),
      mayUseNearby: !isUnpacked,
      ...setting,
    });
    return {
      command: [path, WORKER_ENTRY], // the frame `start` names the app
      env: { PYTHONUNBUFFERED: '1' },
      cwd: null,
      label: 'python',
      mayWait: true,
      interpreter: { path, version },
      threadVariables: ['OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS'],
      watches: [app],
      batchCure: 'write `inference_batch(inputs, ctxs)`, or give a route `batch=True`',
      stuckAt,
      warnings: warnings.map((text) => `${app}: ${text}`),
    };
  },
};
