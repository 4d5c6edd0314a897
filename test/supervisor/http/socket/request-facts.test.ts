import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestIdOf } from '../../../../supervisor/http/socket/request-facts.js';

const NAMES = ['x-banana-request-id'];

const MADE = /^[0-9a-f]{32}$/;

for (const id of ['a', 'req-1', 'A.b_c:d@e/f+g=h', '0'.repeat(128)]) {
  test(`the client's id ${id.slice(0, 20)} is kept`, () => {
    assert.equal(requestIdOf({ 'x-request-id': id }), id);
    assert.equal(requestIdOf({ 'x-banana-request-id': id }, NAMES), id);
  });
}

test('X-Request-Id takes precedence over X-Banana-Request-Id', () => {
  assert.equal(requestIdOf({ 'x-request-id': 'a', 'x-banana-request-id': 'b' }, NAMES), 'a');
});

test('an id in an unlisted header is ignored', () => {
  assert.match(requestIdOf({ 'x-banana-request-id': 'b' }), MADE);
  assert.match(requestIdOf({ 'x-banana-request-id': 'b' }, ['x-other']), MADE);
});

for (const id of [
  '',
  ' ',
  'a b',
  'a\tb',
  'a,b',
  'a"b',
  '<b>',
  'a;b',
  'é',
  '\u{1F34C}',
  'a\nb',
  'x'.repeat(129),
]) {
  test(`${JSON.stringify(id.slice(0, 20))} is not a valid id: a new one is generated`, () => {
    assert.match(requestIdOf({ 'x-request-id': id }), MADE);
  });
}

test('generated ids do not repeat', () => {
  const ids = Array.from({ length: 1000 }, () => requestIdOf({}));
  assert.equal(new Set(ids).size, 1000);
  for (const id of ids) assert.match(id, MADE);
});
