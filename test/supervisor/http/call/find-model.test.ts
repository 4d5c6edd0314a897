/** The search for a call's target in its body: at which sizes it looks, how often, and what it finds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_PREFIX_BYTES,
  type FindTarget,
  type Target,
} from '../../../../supervisor/http/call/call-plan.js';
import { TargetSearch, jsonField, targetNamedBy } from '../../../../supervisor/http/call/find-model.js';

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
  assert.equal(new TargetSearch(TARGET).read(Buffer.alloc(1), true), TARGET);
  assert.equal(new TargetSearch(TARGET).end(), TARGET);
});

test('a body in chunks of one byte is searched each time it has doubled, until the target is found', () => {
  const { find, searches } = findsAt(3000);
  const search = new TargetSearch(find);
  let found: Target | null = null;
  for (let i = 0; i < 10_000; i += 1) found = search.read(Buffer.alloc(1), true);
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
  assert.equal(search.read(Buffer.alloc(10), true), null);
  assert.equal(search.end(), TARGET);
  assert.deepEqual(searches, [
    [10, false],
    [10, true],
  ]);
});

test('only a bounded prefix of a large body is searched', () => {
  const { find, searches } = findsAt(Infinity);
  assert.equal(new TargetSearch(find).read(Buffer.alloc(10 * MAX_PREFIX_BYTES), true), TARGET);
  assert.deepEqual(searches, [[MAX_PREFIX_BYTES, true]]);
});

test('an empty body is searched too', () => {
  const { find, searches } = findsAt(Infinity);
  assert.equal(new TargetSearch(find).end(), TARGET);
  assert.deepEqual(searches, [[0, true]]);
});

test('a name in a JSON object is found as soon as its text is complete, whatever follows', () => {
  const find = jsonField('model');
  const prefix = '{"input":{"model":"x"},"model":"b\\u0061"';
  for (let end = 0; end < prefix.length; end += 1)
    assert.equal(find(Buffer.from(prefix.slice(0, end)), false), 'more', `after ${end} bytes`);
  for (const rest of ['', ',"more":', '}', ' and what is no JSON'])
    assert.deepEqual(find(Buffer.from(prefix + rest), false), { value: 'ba' });
});

for (const [body, found] of [
  ['{"model":5}', 'absent'],
  [`{"model":"${'x'.repeat(5000)}"}`, 'absent'],
  ['{"input":1}', 'more'],
  ['["model"]', 'more'],
  ['model', 'more'],
] as const)
  test(`${body.slice(0, 20)} names no model: ${found}`, () =>
    assert.equal(jsonField('model')(Buffer.from(body), true), found));

test('a body without a name has the target of no name once it has ended', () => {
  const names: (string | null)[] = [];
  const target = targetNamedBy(jsonField('model'), (name) => {
    names.push(name);
    return TARGET;
  });
  const search = new TargetSearch(target);
  assert.equal(search.read(Buffer.from('{"input":'), true), null);
  assert.equal(search.end(), TARGET);
  assert.equal(new TargetSearch(target).read(Buffer.from('{"model":"m","input":'), true), TARGET);
  assert.deepEqual(names, [null, 'm']);
});
