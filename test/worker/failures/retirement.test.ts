import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { lostGpu } from '../lost-gpu.js';
import { Retirement } from '../../../worker/failures/retirement.js';

const NO_MEMORY = Object.assign(new Error('x'), { code: 'ERR_MEMORY_ALLOCATION_FAILED' });
const OTHER = new Error('unknown label: CUDA failure 700: an illegal memory access was encountered');

const LOST = lostGpu();

function after(...thrown: readonly unknown[]): string | null {
  const retirement = new Retirement();
  return thrown.map((one) => retirement.afterCall(one)).at(-1)?.message ?? null;
}

test('three calls in a row without memory end the worker', () => {
  assert.equal(after(NO_MEMORY, NO_MEMORY), null);
  assert.equal(after(NO_MEMORY, NO_MEMORY, NO_MEMORY), 'the app ran out of memory in 3 calls in a row');
  assert.equal(after(NO_MEMORY, NO_MEMORY, undefined, NO_MEMORY), null);
  assert.equal(after(NO_MEMORY, NO_MEMORY, OTHER, NO_MEMORY), null);
});

test('a body that could not be read does not count as a lack of memory', () => {
  assert.notEqual(after(NO_MEMORY, NO_MEMORY, new ServeError('SERVE_BAD_BODY'), NO_MEMORY), null);
});

test('a lost GPU ends the worker at once, in the words of the library', () => {
  for (const thrown of [LOST, new Error('the model failed', { cause: LOST })])
    assert.match(after(thrown) ?? '', /^this process can no longer use its GPU: CUDA failure 700/);
});

test('any other error leaves the worker as it is', () => {
  for (const thrown of [OTHER, 'CUDA failure 700: device-side assert triggered', null])
    assert.equal(after(thrown), null);
});
