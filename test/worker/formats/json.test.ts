import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readJson } from '../../../worker/formats/json.js';
import { encodeJson } from '../../../worker/values/json-encoding.js';
import { serveError } from '../refusals.js';

for (const [what, text, value] of [
  ['an object', '{"prompt":"hey"}', { prompt: 'hey' }],
  ['a bare number', '5', 5],
  ['white space around', ' \n[1]\r\n', [1]],
  ['a byte order mark', '\ufeff{"a":1}', { a: 1 }],
  ['text outside ASCII', '"héé 😀"', 'héé 😀'],
  ['a lone surrogate as an escape', '"\\ud800"', '\ud800'],
] as const) {
  test(`readJson reads ${what}`, () => assert.deepEqual(readJson(Buffer.from(text)), value));
}

for (const [what, bytes, message] of [
  ['text that is not JSON', Buffer.from('hello'), /^The body is not valid JSON: /],
  ['a body cut short', Buffer.from('{"a":'), /^The body is not valid JSON: /],
  ['two values', Buffer.from('1 2'), /^The body is not valid JSON: /],
  ['a number JSON does not have', Buffer.from('NaN'), /^The body is not valid JSON: /],
  [
    'bytes that are not UTF-8',
    Buffer.from([0x22, 0xff, 0x22]),
    /^The body is not valid JSON: it is not UTF-8\.$/,
  ],
  [
    'an overlong encoding',
    Buffer.from([0x22, 0xc0, 0x80, 0x22]),
    /^The body is not valid JSON: it is not UTF-8\.$/,
  ],
  ['two byte order marks', Buffer.from('\ufeff\ufeff1'), /^The body is not valid JSON: /],
  ['UTF-16', Buffer.from('{"a":1}', 'utf16le'), /^The body is not valid JSON: /],
] as const) {
  test(`readJson refuses ${what}`, () => {
    assert.throws(() => readJson(bytes), serveError('SERVE_BAD_BODY', message));
  });
}

test('readJson reads deep nesting, and its value cannot overflow the encoder unnoticed', () => {
  const depth = 100_000;
  const value = readJson(Buffer.from('['.repeat(depth) + ']'.repeat(depth)));
  assert.ok(Array.isArray(value));
  // Newer V8 encodes any depth; older versions overflow and must throw.
  try {
    assert.ok(encodeJson(value).length > 0);
  } catch (thrown) {
    assert.ok(serveError('SERVE_OUTPUT_INVALID', /output is nested too deeply/)(thrown));
  }
});

test('readJson makes an own property of __proto__ and leaves prototypes unchanged', () => {
  const value = readJson(
    Buffer.from('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}'),
  ) as object;
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.ok(Object.hasOwn(value, '__proto__'));
  assert.equal(({} as { admin?: boolean }).admin, undefined);
});

test('readJson turns any bytes into a value or SERVE_BAD_BODY', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        readJson(Buffer.from(bytes));
      } catch (error) {
        serveError('SERVE_BAD_BODY', /^The body is not valid JSON: /)(error);
      }
    }),
  );
});
