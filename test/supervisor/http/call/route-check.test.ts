import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { bodyMistake, routeMistake } from '../../../../supervisor/http/call/route-check.js';
import type { Route, RouteInput } from '../../../../protocol/messages.js';

const route = (input: RouteInput): Route => ({ path: '/', kind: 'handler', input, webhook: '' });
const withType = (type?: string): IncomingMessage =>
  ({ headers: type === undefined ? {} : { 'content-type': type } }) as IncomingMessage;

test('no such route is 404, whatever is sent', () => {
  assert.equal(routeMistake(undefined, withType('application/json'))?.code, 'SERVE_NOT_FOUND');
  assert.equal(routeMistake(undefined, withType())?.code, 'SERVE_NOT_FOUND');
});

for (const type of [
  'application/json',
  'Application/JSON',
  ' application/json ',
  'application/json; charset=utf-8',
  'application/json;charset=utf-8',
  'application/problem+json',
  'application/vnd.api.v1+json',
]) {
  test(`a JSON route takes ${type}`, () => assert.equal(routeMistake(route('json'), withType(type)), null));
}

for (const type of [
  undefined,
  '',
  'text/plain',
  'text/json',
  'application/jsonp',
  'application/x-json',
  'application/+json',
  'application/octet-stream',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=json',
  'image/application/json',
]) {
  test(`${type ?? 'no type'} on a JSON route is a bad request, on a raw one it is none`, () => {
    assert.equal(routeMistake(route('json'), withType(type))?.code, 'SERVE_BAD_REQUEST');
    assert.equal(routeMistake(route('any'), withType(type)), null);
  });
}

test('an empty body is a mistake on a JSON route only', () => {
  assert.equal(bodyMistake(route('json'), [], 0)?.code, 'SERVE_BAD_BODY');
  assert.equal(bodyMistake(route('json'), [Buffer.from('1')], 1), null);
  assert.equal(bodyMistake(route('any'), [], 0), null);
});

test('broken JSON is a mistake before a worker sees it only where no caller waits for one', () => {
  const pieces = [Buffer.from('{"a"'), Buffer.from(':}')];
  const background = { ...route('json'), kind: 'background' } as const;
  assert.equal(bodyMistake(route('json'), pieces, 6), null);
  assert.equal(bodyMistake(background, pieces, 6)?.code, 'SERVE_BAD_BODY');
  assert.equal(bodyMistake(background, [Buffer.from('[1, "x"]')], 8), null);
});
