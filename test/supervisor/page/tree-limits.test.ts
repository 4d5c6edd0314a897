/** The limits of the JSON tree. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readJson, type JsonNode } from '../../../supervisor/page/parts/json-text.js';
import { firstStep, nextStep, openAtFirst, rowsOf } from '../../../supervisor/page/try/tree-limits.js';

function nodeOf(value: unknown): JsonNode {
  const { node } = readJson(JSON.stringify(value));
  assert.ok(node !== null);
  return node;
}

test('a long list of objects is drawn in steps that double', () => {
  const node = nodeOf(Array.from({ length: 1000 }, (_, id) => ({ id })));
  assert.equal(firstStep(node), 100);
  const { rows, total } = rowsOf(node, 100);
  assert.deepEqual([rows.length, total], [100, 1000]);
  assert.deepEqual(
    [nextStep(100, total), nextStep(200, total), nextStep(950, total), nextStep(1000, total)],
    [100, 200, 50, 0],
  );
});

test('a long list of numbers is one row', () => {
  const node = nodeOf(Array.from({ length: 1000 }, (_, i) => i / 8));
  const { rows } = rowsOf(node, firstStep(node));
  assert.equal(rows.length, 1);
  assert.match(rows[0]?.kind === 'numbers' ? rows[0].text : '', /^0, 0\.125, .*, 49\.875$/);
});

for (const [title, value, depth, expected] of [
  ['the root is open, however large', Array(1000).fill('a'), 0, true],
  ['a small object near the root is open', { a: { b: 1 } }, 1, true],
  ['a large one is closed', Array(1000).fill('a'), 1, false],
  ['a deep one is closed', { a: 1 }, 3, false],
] as const)
  test(title, () => assert.equal(openAtFirst(nodeOf(value), depth), expected));
