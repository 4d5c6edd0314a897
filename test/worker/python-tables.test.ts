/** The Python worker has the tables of `protocol/`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areTablesCurrent } from '../tools/python-tables.js';

test('the tables of the Python worker are those of the server: `npm run format` prints them', () => {
  assert.ok(areTablesCurrent());
});
