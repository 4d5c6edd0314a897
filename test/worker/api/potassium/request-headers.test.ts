import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestHeaders } from '../../../../worker/api/potassium/request.js';

const headers = new RequestHeaders({ 'x-first': '1', x_second: '2', empty: '' });

for (const [name, value] of [
  ['x-first', '1'],
  ['X-First', '1'],
  ['X_FIRST', '1'],
  ['x-second', '2'],
  ['X_Second', '2'],
  ['empty', ''],
] as const) {
  test(`${name} is found in any case, with - or _`, () => {
    assert.equal(headers.get(name), value);
    assert.equal(headers.get(name, 'fallback'), value);
    assert.equal(headers.require(name), value);
    assert.ok(headers.has(name));
  });
}

test('a header that was not sent is undefined, the fallback, or an error', () => {
  assert.equal(headers.get('x-none'), undefined);
  assert.equal(headers.get('x-none', 5), 5);
  assert.equal(headers.get('x-none', null), null);
  assert.ok(!headers.has('x-none'));
  assert.throws(() => headers.require('x-none'), new Error('The request has no header x-none'));
});

test('a header written with underscores does not stand for one with dashes', () => {
  for (const sent of [
    { 'x-user': 'a', x_user: 'b' },
    { x_user: 'b', 'x-user': 'a' },
  ]) {
    const found = ['X-User', 'x_user'].map((name) => new RequestHeaders(sent).get(name));
    assert.deepEqual(found, ['a', 'a']);
  }
});

test('names of properties that every object has are not headers', () => {
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.equal(new RequestHeaders({}).get(name), undefined, name);
    assert.ok(!new RequestHeaders({}).has(name), name);
  }
});

test('a name that is not a string is refused', () => {
  for (const name of [5, null, undefined, {}]) assert.throws(() => headers.get(name as string), TypeError);
});

test('all headers can be gone through', () => {
  assert.deepEqual(
    [...headers],
    [
      ['x-first', '1'],
      ['x_second', '2'],
      ['empty', ''],
    ],
  );
});
