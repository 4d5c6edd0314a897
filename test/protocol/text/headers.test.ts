import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { splitHeaderLines } from '../../../protocol/text/headers.js';

for (const [lines, pairs] of [
  ['', []],
  ['Host\nlocalhost', [['Host', 'localhost']]],
  [
    'Set-Cookie\na=1\nSet-Cookie\nb=2',
    [
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2'],
    ],
  ],
  ['X-Empty\n', [['X-Empty', '']]],
  ['A\n1\nname without a value', [['A', '1']]],
] as const) {
  test(`splitHeaderLines reads ${JSON.stringify(lines)}`, () => {
    assert.deepEqual(splitHeaderLines(lines), pairs);
  });
}

test('any headers survive as lines, in their order', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9-]+$/);
  const value = fc.stringMatching(/^[^\n\r\0]*$/);
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value)), (pairs) => {
      assert.deepEqual(splitHeaderLines(pairs.flat().join('\n')), pairs);
    }),
  );
});
