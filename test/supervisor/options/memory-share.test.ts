import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOf, parseBudget } from '../../../supervisor/options/value-forms.js';
import { NotAllowed } from '../../../supervisor/options/units.js';

const budgets: [raw: unknown, bytesOf1000: number][] = [
  ['2gb', 2 * 2 ** 30],
  [512, 512],
  ['50%', 500],
  [' 12.55 %', 125],
  ['100%', 1000],
];

for (const [raw, bytes] of budgets)
  test(`${JSON.stringify(raw)} of 1000 bytes are ${bytes}`, () => {
    assert.equal(bytesOf(parseBudget(raw), 1000), bytes);
  });

for (const raw of ['0%', '101%', '0', 0, '', '%', '-5%', 'half', null])
  test(`${JSON.stringify(raw)} is no budget`, () => {
    assert.throws(() => parseBudget(raw), NotAllowed);
  });
