/** Values of programs as V8 writes them: what it does not write is an error that says where it is, however deep. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { V8_VALUES } from '../../../protocol/values/v8-values.js';
import { nested } from './nested.js';

const { read, write } = V8_VALUES;
const written = (value: unknown): Buffer => write(value, 'input', 'SERVE_BAD_BODY');

test('a value that is nested too deep is refused, and does not end the process', () => {
  assert.throws(() => written({ list: nested(20_000) }), {
    code: 'SERVE_BAD_BODY',
    message: /input\.list\[0\]\[0\].*… is nested more than 1000 levels deep\.$/,
  });
  assert.deepStrictEqual(read(written(nested(500))).value, nested(500));
});
