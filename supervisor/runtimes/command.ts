/** Runtime of `workerCommand`: the user's own program, in any language, that speaks the wire protocol. */
import { basename } from 'node:path';
import type { Runtime } from './runtime.js';

export const command: Runtime = {
  names: [],
  entries: [],
  alone: [],
  sources: null,
  leftovers: [],
  claims: ({ workerCommand }) => workerCommand !== null,
  prepare: ({ workerCommand }) => {
    const [program = '', ...args] = workerCommand ?? [];
    return Promise.resolve({
      command: [program, ...args],
      env: {},
      label: basename(program),
      interpreter: null,
      threadVariables: [],
      watches: [],
      batchCure: 'name a `maxBatch` above 1 with a route in the message `loaded`',
      warnings: [],
    });
  },
};
