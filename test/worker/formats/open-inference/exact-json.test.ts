import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readExactJson, isInexactRequest } from '../../../../worker/formats/open-inference/exact-json.js';
import { serveError } from '../../refusals.js';

/** Reads with our own reader. */
const exact = (text: string): unknown => readExactJson(text, 'The body', () => true);

/** The value with the numbers of JSON.parse. */
function rounded(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(rounded);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rounded(item)]));
}

test('any JSON is read as JSON.parse reads it, but for the digits', () => {
  const spaced = fc.tuple(fc.json({ maxDepth: 6 }), fc.constantFrom('', ' ', '\n\t\r '));
  fc.assert(
    fc.property(spaced, ([text, space]) => {
      const value = JSON.parse(text) as unknown;
      assert.deepEqual(rounded(exact(space + text + space)), value);
      assert.deepEqual(rounded(exact(JSON.stringify(value, null, 2))), value);
    }),
  );
});

test('any other text is refused, as JSON.parse refuses it, but for the words of Triton', () => {
  const marks = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    ',',
    ':',
    '1',
    '0',
    '-',
    '.',
    'e',
    '\\',
    'u',
    ' ',
    'true',
    '\n',
  );
  fc.assert(
    fc.property(fc.array(marks, { maxLength: 8 }), (parts) => {
      const text = parts.join('');
      const outcome = (read: () => unknown): unknown => {
        try {
          return { value: read() };
        } catch {
          return 'refused';
        }
      };
      assert.deepEqual(
        outcome(() => exact(text)),
        outcome(() => JSON.parse(text)),
      );
    }),
    { numRuns: 2000 },
  );
});

test('integers of 64 bits have all their digits', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }), (integer) => {
      assert.equal(BigInt(exact(String(integer)) as bigint), integer);
    }),
  );
});

for (const [text, value] of [
  ['NaN', NaN],
  ['[Infinity, -Infinity]', [Infinity, -Infinity]],
  ['{"__proto__": 1}', JSON.parse('{"__proto__": 1}')],
  ['{"a": 1, "a": 2}', { a: 2 }],
  ['-0', -0],
  ['9007199254740991', 9007199254740991],
  ['9007199254740992', 9007199254740992n],
  ['18446744073709551616.0', 2 ** 64],
  [`1${'0'.repeat(40)}`, 1e40],
] as const)
  test(`${text.slice(0, 40)} is read`, () => assert.deepEqual(exact(text), value));

for (const [text, message] of [
  ['', /^The body is not valid JSON: it ends too early\.$/],
  ['[1', /it ends too early/],
  ['[1,]', /"\]" is unexpected at character 3\.$/],
  ['{"a" 1}', /"1" is unexpected at character 5\.$/],
  ['"a', /the text at character 0 has no end, a control character or an unknown escape\.$/],
  ['"\\x"', /an unknown escape/],
  ['nan', /"n" is unexpected at character 0/],
  ['-NaN', /"-" is unexpected/],
  ['Infinit', /"I" is unexpected at character 0/],
  ['1e999', /1e999 is beyond the largest number/],
  ['1'.repeat(400), /1111 is beyond the largest number/],
  ['['.repeat(100_000), /nested deeper than 64 levels/],
  ['['.repeat(100_000) + ']'.repeat(100_000), /nested deeper than 64 levels/],
  [`{"a":${'['.repeat(100_000)}`, /nested deeper than 64 levels/],
] as const)
  test(`${text.slice(0, 20)} is refused`, () =>
    assert.throws(() => exact(text), serveError('SERVE_BAD_BODY', message)));

const tensor = (datatype: string, data: unknown): object => ({ inputs: [{ name: 'x', datatype, data }] });

for (const [what, request, isInexact] of [
  ['a small INT64', tensor('INT64', [[1, 2 ** 53 - 1]]), false],
  ['an INT64 beyond 2^53', tensor('INT64', [[1, 2 ** 53]]), true],
  ['a fraction in INT64', tensor('INT64', [1.5]), false],
  ['a large number in FP64', tensor('FP64', [1e300]), false],
  ['a number in FP64 that was too large', tensor('FP64', [[-Infinity]]), true],
  ['a large parameter', { parameters: { seed: 2 ** 60 } }, true],
  ['a small parameter', { parameters: { seed: 2 ** 50, x: 0.1 } }, false],
  ['a value of another kind', [[null]], false],
  ['inputs of another kind', { inputs: [null, 5, { data: { a: 1 } }] }, false],
] as const)
  test(`a request with ${what} is read ${isInexact ? 'again, by its digits' : 'once'}`, () =>
    assert.equal(isInexactRequest(request), isInexact));
