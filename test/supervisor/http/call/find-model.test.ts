/** TargetSearch asks the plan for its target as the body arrives: at which sizes, and how often. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_PREFIX_BYTES,
  type FindTarget,
  type Target,
} from '../../../../supervisor/http/call/call-plan.js';
import { TargetSearch } from '../../../../supervisor/http/call/find-model.js';

const TARGET = { model: {}, route: '/' } as unknown as Target;

/** Finds the target once this many bytes have arrived, and records each search. */
function findsAt(bytes: number): { find: FindTarget; searches: [bytes: number, isLast: boolean][] } {
  const searches: [number, boolean][] = [];
  const find: FindTarget = (prefix, isLast) => {
    searches.push([prefix.length, isLast]);
    return prefix.length >= bytes || isLast ? TARGET : 'more';
  };
  return { find, searches };
}

test('a target that is known needs no bytes', () => {
  assert.equal(new TargetSearch(TARGET).read(Buffer.alloc(1)), TARGET);
  assert.equal(new TargetSearch(TARGET).end(), TARGET);
});

test('a body in chunks of one byte is searched each time it has doubled, until the target is found', () => {
  const { find, searches } = findsAt(3000);
  const search = new TargetSearch(find);
  let found: Target | null = null;
  for (let i = 0; i < 10_000; i += 1) found = search.read(Buffer.alloc(1));
  assert.equal(found, TARGET);
  assert.deepEqual(
    searches.map(([bytes]) => bytes),
    [1, 1024, 2048, 4096],
  );
  assert.equal(search.end(), TARGET);
});

test('the last search is at the end of the body', () => {
  const { find, searches } = findsAt(Infinity);
  const search = new TargetSearch(find);
  assert.equal(search.read(Buffer.alloc(10)), null);
  assert.equal(search.end(), TARGET);
  assert.deepEqual(searches, [
    [10, false],
    [10, true],
  ]);
});

test('only a bounded prefix of a large body is searched', () => {
  const { find, searches } = findsAt(Infinity);
  assert.equal(new TargetSearch(find).read(Buffer.alloc(10 * MAX_PREFIX_BYTES)), TARGET);
  assert.deepEqual(searches, [[MAX_PREFIX_BYTES, true]]);
});

test('an empty body is searched too', () => {
  const { find, searches } = findsAt(Infinity);
  assert.equal(new TargetSearch(find).end(), TARGET);
  assert.deepEqual(searches, [[0, true]]);
});
