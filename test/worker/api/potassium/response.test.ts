import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Response, type ResponseInit } from '../../../../worker/api/potassium/response.js';

test('a Response of nothing is 200 with neither headers nor a body', () => {
  const response = new Response();
  assert.deepEqual(
    [response.status, response.headers, response.body, response.json, response.isJson],
    [200, {}, undefined, null, false],
  );
});

test('json and body together are refused, even where one of them is empty', () => {
  const message = 'Potassium Response object cannot have both json and body set';
  for (const both of [
    { json: {}, body: 'x' },
    { json: null, body: '' },
  ])
    assert.throws(() => new Response(both as unknown as ResponseInit), new Error(message));
});

for (const args of [
  [201, { a: 1 }],
  [{ a: 1 }, 201],
  [{ json: 1 }, { status: 201 }],
  [[1]],
  ['text'],
  [null],
]) {
  test(`new Response(${JSON.stringify(args).slice(1, -1)}) throws, with the form`, () => {
    const form = /takes one object: new Response\(\{ status: 201, json/;
    assert.throws(() => Reflect.construct(Response, args), form);
  });
}

for (const status of [199, 600, 0, 200.5, NaN, '200', null]) {
  test(`status ${String(status)} is refused`, () =>
    assert.throws(() => new Response({ status } as ResponseInit), RangeError));
}

for (const status of [200, 201, 404, 599]) {
  test(`status ${status} is taken`, () => assert.equal(new Response({ status }).status, status));
}

for (const json of [null, 0, false, '', [], { a: 1 }]) {
  test(`${JSON.stringify(json)} is JSON to answer`, () => {
    const response = new Response({ json });
    assert.deepEqual([response.json, response.isJson], [json, true]);
  });
}

for (const [what, body, json] of [
  ['text that is JSON', '{"a":1}', { a: 1 }],
  ['bytes that are JSON', Buffer.from('[1,"é"]'), [1, 'é']],
  ['a Uint8Array that is JSON', new Uint8Array([0x35]), 5],
  ['text that is none', 'hello', null],
  ['no text', '', null],
  ['bytes that are none', new Uint8Array([0xff, 0xfe]), null],
  ['an iterable', ['{}'], null],
] as const) {
  test(`the json of ${what}`, () => {
    const response = new Response({ body });
    assert.deepEqual([response.json, response.isJson], [json, false]);
  });
}

test('setting json takes the place of the body, and of the json before', () => {
  const response = new Response<unknown>({ body: 'text' });
  response.json = { a: 1 };
  assert.deepEqual([response.json, response.body, response.isJson], [{ a: 1 }, undefined, true]);
  response.json = 5;
  assert.equal(response.json, 5);
});

test('json sets Content-Type, over whatever was given under that name in any case', () => {
  const given = new Response({ json: 1, headers: { 'content-type': 'text/plain', 'X-Model': 'm' } });
  assert.deepEqual(given.headers, { 'X-Model': 'm', 'Content-Type': 'application/json' });
  const response = new Response({ body: '1', headers: { 'CONTENT-TYPE': 'text/plain' } });
  assert.deepEqual(response.headers, { 'CONTENT-TYPE': 'text/plain' });
  response.json = 2;
  assert.deepEqual(response.headers, { 'Content-Type': 'application/json' });
});

test('headers are a copy: changing them changes no other answer', () => {
  const shared = { 'X-Model': 'a' };
  new Response({ headers: shared }).headers['X-Model'] = 'b';
  assert.deepEqual(shared, { 'X-Model': 'a' });
});
