import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { JoinedPieces } from '../../../supervisor/memory/joined-pieces.js';

test('view and take return the pieces in order, and take leaves nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 8 }), (pieces) => {
      const joined = new JoinedPieces();
      for (const piece of pieces) joined.add(Buffer.from(piece));
      const whole = Buffer.concat(pieces);
      assert.ok(joined.view.equals(whole));
      assert.ok(joined.take().equals(whole));
      assert.deepEqual([joined.bytes, joined.take().length], [0, 0]);
    }),
  );
});

test('taken bytes are not changed by later pieces', () => {
  const joined = new JoinedPieces();
  joined.add(Buffer.from('first'));
  const taken = joined.take();
  joined.add(Buffer.from('again'));
  assert.deepEqual([taken.toString(), joined.view.toString()], ['first', 'again']);
});

test('pieces of one byte are held in at most twice their bytes', () => {
  const joined = new JoinedPieces();
  for (let i = 0; i < 50_000; i += 1) joined.add(Buffer.alloc(1, 'x'));
  assert.ok(joined.view.buffer.byteLength <= 100_000);
});
