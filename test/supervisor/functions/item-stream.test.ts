/** The stream of a function's answer: items in any parts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { V8_VALUES } from '../../../protocol/values/v8-values.js';
import { ItemStream } from '../../../supervisor/functions/function-sink.js';

function framed(values: readonly unknown[]): Buffer {
  return Buffer.concat(
    values.flatMap((value) => {
      const bytes = V8_VALUES.write(value, 'item', 'SERVE_BAD_BODY');
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return [length, bytes];
    }),
  );
}

test('items come whole, whatever the parts; each part is confirmed once its items are taken', async () => {
  const values = ['a', { b: 'x'.repeat(300) }, new Uint8Array(2000).fill(7), null];
  const bytes = framed(values);
  for (const size of [1, 3, 4, 5, 100, bytes.length]) {
    const stream = new ItemStream(V8_VALUES, () => assert.fail('nobody leaves'));
    let taken = 0;
    let parts = 0;
    for (let at = 0; at < bytes.length; at += size) {
      const part = bytes.subarray(at, at + size);
      const middle = part.length >> 1;
      stream.push([part.subarray(0, middle), part.subarray(middle)], () => (taken += 1));
      parts += 1;
    }
    stream.end(null);
    const items: unknown[] = [];
    for await (const item of stream) items.push(item);
    assert.deepEqual([items, taken], [values, parts], `parts of ${size}`);
  }
});
