import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGpus } from '../../../supervisor/options/value-forms.js';
import { NotAllowed } from '../../../supervisor/options/units.js';

const UUID = 'GPU-5d5ba0d6-1b9c-4d0d-8a3c-2f6f0c1c2d3e';

for (const raw of [
  'all',
  'none',
  '0',
  '0,2',
  'first:2',
  '0, 12',
  UUID,
  `${UUID},1`,
  'MIG-c7384736',
  'MIG-GPU-5d5b/1/0',
]) {
  test(`--gpus ${raw} is kept unchanged`, () => assert.equal(parseGpus(raw), raw));
}

test('one index may be a number', () => assert.equal(parseGpus(2), '2'));

for (const raw of [
  '',
  'All',
  'all,0',
  '0,',
  ',0',
  '0 2',
  '-1',
  -1,
  1.5,
  'cuda:0',
  'GPU-',
  null,
  true,
  ['0'],
]) {
  test(`--gpus ${JSON.stringify(raw)} is refused`, () => assert.throws(() => parseGpus(raw), NotAllowed));
}
