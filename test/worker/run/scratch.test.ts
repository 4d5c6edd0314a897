import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { utf8InScratch } from '../../../worker/run/running-call.js';
import { anyText } from '../../helpers/any-text.js';

test('the bytes of any text are its UTF-8', () => {
  fc.assert(
    fc.property(anyText(), (text) => {
      assert.ok(utf8InScratch(text).equals(Buffer.from(text)));
    }),
  );
});

for (const [what, text] of [
  ['no text', ''],
  ['a text that grows the scratch', 'ä'.repeat(1_000_000)],
  ['a text of three bytes a unit, to the last byte of the scratch', '€'.repeat(2_000_000)],
  ['a text too large for the scratch', 'b'.repeat(17_000_000)],
] as const) {
  test(`${what} is whole`, () => assert.ok(utf8InScratch(text).equals(Buffer.from(text))));
}

test('a later text takes the place of the one before', () => {
  const first = utf8InScratch('first');
  const second = utf8InScratch('other');
  assert.equal(first.toString(), 'other');
  assert.equal(second.toString(), 'other');
});
