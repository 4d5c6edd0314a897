/** When a plan is asked for its target while a body arrives. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_PREFIX_BYTES,
  type FindTarget,
  type Target,
} from '../../../../supervisor/http/call/call-plan.js';
import { TargetSearch } from '../../../../supervisor/http/call/target-search.js';

const TARGET = { model: {}, route: '/' } as unknown as Target;

/** Finds the target once so many bytes are there, and notes how it was asked. */
function findsAt(bytes: number): { find: FindTarget; asked: [bytes: number, isLast: boolean][] } {
  const asked: [number, boolean][] = [];
  const find: FindTarget = (prefix, isLast) => {
    asked.push([prefix.length, isLast]);
    return prefix.length >= bytes || isLast ? TARGET : 'more';
  };
  return { find, asked };
}

test('a target that is known needs no bytes', () => {
  assert.equal(new TargetSearch(TARGET).read(Buffer.alloc(1)), TARGET);
  assert.equal(new TargetSearch(TARGET).end(), TARGET);
});

test('a body in chunks of one byte is looked at each time it has doubled, and never again once found', () => {
  const { find, asked } = findsAt(3000);
  const search = new TargetSearch(find);
  let found: Target | null = null;
  for (let i = 0; i < 10_000; i += 1) found = search.read(Buffer.alloc(1));
  assert.equal(found, TARGET);
  assert.deepEqual(
    asked.map(([bytes]) => bytes),
    [1, 1024, 2048, 4096],
  );
  assert.equal(search.end(), TARGET);
});

test('the end of the body is the last time', () => {
  const { find, asked } = findsAt(Infinity);
  const search = new TargetSearch(find);
  assert.equal(search.read(Buffer.alloc(10)), null);
  assert.equal(search.end(), TARGET);
  assert.deepEqual(asked, [
    [10, false],
    [10, true],
  ]);
});

test('of a large body only the bounded prefix is looked at', () => {
  const { find, asked } = findsAt(Infinity);
  assert.equal(new TargetSearch(find).read(Buffer.alloc(10 * MAX_PREFIX_BYTES)), TARGET);
  assert.deepEqual(asked, [[MAX_PREFIX_BYTES, true]]);
});

test('an empty body is asked about too', () => {
  const { find, asked } = findsAt(Infinity);
  assert.equal(new TargetSearch(find).end(), TARGET);
  assert.deepEqual(asked, [[0, true]]);
});
