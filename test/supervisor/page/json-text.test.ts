/** JSON as text: exact, and readable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countOf, formatJson, readJson } from '../../../supervisor/page/parts/json-text.js';

const formatted = (text: string): string => {
  const { node } = readJson(text);
  assert.ok(node !== null, text);
  return formatJson(node);
};

test('formatting any JSON leaves its value as it is', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      assert.deepEqual(JSON.parse(formatted(text)), JSON.parse(text));
    }),
  );
});

for (const [title, text, expected] of [
  [
    'long numbers stay exact',
    '[12345678901234567890,1.50,-0,1E400]',
    '[12345678901234567890, 1.50, -0, 1E400]',
  ],
  [
    'escapes stay as they are written',
    String.raw`{"a\"b":"\ud83d\u0041"}`,
    String.raw`{ "a\"b": "\ud83d\u0041" }`,
  ],
  [
    'a list of lists has a line for each',
    '{"m":[[1,2],[3,4]]}',
    '{\n  "m": [\n    [1, 2],\n    [3, 4]\n  ]\n}',
  ],
  ['empty ones', '{"a":{},"b":[]}', '{ "a": {}, "b": [] }'],
  ['a scalar', ' true ', 'true'],
] as const)
  test(`formatted JSON: ${title}`, () => assert.equal(formatted(text), expected));

test('a mistake is named', () => {
  const { node, problem } = readJson('{"a":}');
  assert.equal(node, null);
  assert.match(problem ?? '', /token|JSON/i);
});

test('JSON that is nested too deeply to be drawn is refused, and does not overflow the stack', () => {
  const { problem } = readJson('['.repeat(50_000) + ']'.repeat(50_000));
  assert.match(problem ?? '', /deep|stack/i);
});

for (const [title, text] of [
  ['of 20 MB', 'A'.repeat(20e6)],
  ['of 5 MB of escapes', String.raw`\"\\`.repeat(1_250_000)],
] as const)
  test(`a string ${title} is read`, () => {
    const { node } = readJson(`["${text}",1]`);
    assert.equal(node && countOf(node), 2);
  });
