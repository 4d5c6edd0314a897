import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { entriesOf, halvesOf, onlyEntry } from '../../../worker/adapters/batch-entries.js';
import { serveError } from '../refusals.js';

for (const [what, returned, calls, message] of [
  ['too few', ['a'], 3, /returned 1 entry for 3 calls; it must return an array with one entry per call/],
  ['too many', [1, 2, 3], 2, /returned 3 entries for 2 calls/],
  ['none', [], 1, /returned 0 entries for 1 call;/],
  ['nothing', undefined, 2, /returned undefined for 2 calls/],
  ['null', null, 2, /returned null for 2 calls/],
  ['an object', { length: 2 }, 2, /returned an object that is not an array for 2 calls/],
  ['a text of as many characters', 'ab', 2, /returned a string for 2 calls/],
] as const) {
  test(`a batch function that returns ${what} for ${calls} gets an error with both`, () => {
    assert.throws(() => entriesOf(returned, calls), serveError('SERVE_OUTPUT_INVALID', message));
  });
}

test('a hole is an entry of its own: undefined', () => {
  assert.deepEqual(entriesOf(new Array(2), 2), [undefined, undefined]);
});

test('the only entry is awaited with the array around it', async () => {
  assert.equal(onlyEntry(['a']), 'a');
  assert.equal(await onlyEntry(Promise.resolve(['a'])), 'a');
  assert.throws(() => onlyEntry([1, 2]), /2 entries for 1 call;/);
  await assert.rejects(() => onlyEntry(Promise.resolve('a')) as Promise<unknown>, /a string for 1 call;/);
});

test('halves hold all items in order, and the first is at most one item longer', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { minLength: 2 }), (items) => {
      const [first, second] = halvesOf(items);
      assert.deepEqual([...first, ...second], items);
      assert.ok(first.length - second.length === 0 || first.length - second.length === 1);
    }),
  );
});

test('halving again and again leaves each of n items alone after ceil(log2 n) times', () => {
  const depth = (items: readonly number[]): number =>
    items.length === 1 ? 0 : 1 + Math.max(...halvesOf(items).map(depth));
  for (let n = 1; n <= 130; n += 1) {
    assert.equal(depth(Array.from({ length: n }, (_, i) => i)), Math.ceil(Math.log2(n)));
  }
});
