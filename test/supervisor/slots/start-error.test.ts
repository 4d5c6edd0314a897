/** Tests of the error for a worker that dies before it is ready. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkerDeath } from '../../../supervisor/processes/worker-death.js';
import { startError } from '../../../supervisor/slots/start-error.js';
import { AT_START, HEALTHY } from './slot-bench.js';

function deathThatSaid(message: string): WorkerDeath {
  const fatal = { code: 'SERVE_INIT_FAILED', message, detail: '', permanent: false, transient: true };
  return { ...HEALTHY, ...AT_START, fatal };
}

const LOAD = '/m/service.py:3: handle(None, context), the call that loads the model, raised:';

for (const message of [
  '/m/app.mjs: init threw: RangeError: Array buffer allocation failed',
  `${LOAD} MemoryError`,
  `${LOAD} _ArrayMemoryError: Unable to allocate 745 GiB for an array with shape (100000000000,)`,
  `${LOAD} OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB`,
  `${LOAD} torch.cuda.OutOfMemoryError: CUDA out of memory.`,
  `${LOAD} RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB`,
])
  test(`no memory at the start: ${message.slice(0, 130)}`, () => {
    assert.equal(startError(deathThatSaid(message)).kind, 'out-of-memory');
  });

for (const message of [`${LOAD} ValueError: MemoryError`, `${LOAD} MemoryErrors: none`])
  test(`another reason: ${message}`, () => {
    assert.equal(startError(deathThatSaid(message)).kind, '');
  });
