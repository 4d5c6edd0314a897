/** The look of charts: which values are drawn as points, because a line would show nothing of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loneValues } from '../../../supervisor/page/watch/chart-options.js';

for (const [title, values, lone] of [
  ['without neighbours', [7, null, 0, null, 1, 2, null, 3], [0, 2, 7]],
  ['in a line', [1, 2, 3], null],
  ['that are missing', [null, null], null],
] as const)
  test(`values ${title}`, () => assert.deepEqual(loneValues(values), lone));
