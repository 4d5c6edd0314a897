/** Apps in Python: an interpreter of the user's, with our own worker, which needs nothing but the standard library. */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Runtime } from './runtime.js';

/** The folder of what apps may import from us: it is shipped as it is, and lies beside `dist`. */
export const PYTHON_PATH = fileURLToPath(new URL('../../../worker/python', import.meta.url));

const WORKER_ENTRY = `${PYTHON_PATH}/banana_worker/__main__.py`;
const EXTENSIONS = ['.py'];

export const python: Runtime = {
  names: ['python', 'python2', 'python3'],
  extensions: EXTENSIONS,
  claims: ({ app }) => EXTENSIONS.includes(extname(app)),
  prepare: ({ app }, { options }) =>
    Promise.resolve({
      command: [options.python ?? 'python3', WORKER_ENTRY], // the app is named in the frame `start`
      env: { PYTHONUNBUFFERED: '1' },
      cwd: null,
      label: 'python',
      watches: [app],
    }),
};
