/** The limits of the JSON tree. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readJson, type JsonNode } from '../../../supervisor/page/parts/json-text.js';
import { firstStep, nextStep, numbersOf, openAtFirst } from '../../../supervisor/page/try/json-tree.js';

function nodeOf(value: unknown): JsonNode {
  const { node } = readJson(JSON.stringify(value));
  assert.ok(node !== null);
  return node;
}

test('a long list of objects is drawn in steps that double', () => {
  const node = nodeOf(Array.from({ length: 1000 }, (_, id) => ({ id })));
  assert.equal(firstStep(node), 100);
  assert.deepEqual(
    [100, 200, 950, 1000].map((shown) => nextStep(shown, 1000 - shown)),
    [100, 200, 50, 0],
  );
});

test('a long list of numbers is one row', () => {
  const node = nodeOf(Array.from({ length: 1000 }, (_, i) => i / 8));
  assert.match(numbersOf(node, firstStep(node)) ?? '', /^0, 0\.125, .*, 49\.875$/);
});

for (const [title, value, depth, expected] of [
  ['the root is open, however large', Array(1000).fill('a'), 0, true],
  ['a small object near the root is open', { a: { b: 1 } }, 1, true],
  ['a large one is closed', Array(1000).fill('a'), 1, false],
  ['a deep one is closed', { a: 1 }, 3, false],
] as const)
  test(title, () => assert.equal(openAtFirst(nodeOf(value), depth), expected));
