/** The look of charts: which values are drawn as points, because a line would show nothing of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loneValues } from '../../../supervisor/page/watch/charts-view.js';

for (const [title, values, lone] of [
  ['without neighbours', [7, null, 0, null, 1, 2, null, 3], [0, 2, 4, 5, 7]],
  ['in a line', [1, 2, 3, 4, 5, 6, 7, 8], null],
  ['above zero among zeros', [0, 0, 0, 0, 1, 0, 0, 0, 0], [4]],
  ['that are missing', [null, null], null],
] as const)
  test(`values ${title}`, () => assert.deepEqual(loneValues(values), lone));
