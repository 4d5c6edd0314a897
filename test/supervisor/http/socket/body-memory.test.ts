/** Memory of request bodies: which of it is lent, and when it is returned. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { Body } from '../../../../supervisor/http/socket/body-memory.js';
import { slabs } from '../../../../supervisor/memory/slabs.js';

const KIB = 1024;
const PIECE_BYTES = 64 * KIB;
const BODY_BYTES = 2050 * KIB;

afterEach(() => {
  // What a test returned must not serve the next one.
  for (let i = 0; i < 12; i += 1) for (const kib of [256, 1024, 2560]) slabs.take(kib * KIB);
  assert.equal(slabs.freeBytes, 0);
});

/** Returns a body of these pieces, whose length was announced or not, and its bytes. */
function kept(announced: number, sizes: readonly number[]): [Body, Buffer] {
  const memory = new Body(announced);
  const pieces = sizes.map((size, i) => Buffer.alloc(size, i + 1));
  for (const piece of pieces) memory.keep(piece);
  memory.end();
  return [memory, Buffer.concat(pieces)];
}

function piecesOf(bytes: number): number[] {
  const whole = Array<number>(Math.floor(bytes / PIECE_BYTES)).fill(PIECE_BYTES);
  return [...whole, bytes % PIECE_BYTES];
}

for (const [what, announced] of [
  ['was announced', BODY_BYTES],
  ['is not known', 0],
] as const) {
  test(`a large body whose length ${what} is lent memory, which it returns`, () => {
    const [body, whole] = kept(announced, piecesOf(BODY_BYTES));
    assert.ok(Buffer.concat(body.pieces).equals(whole));
    assert.equal(slabs.freeBytes, 0);
    body.release();
    const returned = slabs.freeBytes;
    assert.ok(returned >= BODY_BYTES - 512 * KIB, `${returned} bytes`);
    body.release();
    assert.equal(slabs.freeBytes, returned);
  });

  test(`a large body whose length ${what} is joined in slices, and returns what is copied meanwhile`, () => {
    const [body, whole] = kept(announced, piecesOf(BODY_BYTES));
    const returned: number[] = [];
    const joining = body.join();
    let step = joining.next();
    for (; step.done !== true; step = joining.next()) returned.push(slabs.freeBytes);
    assert.ok(step.value.equals(whole));
    assert.ok(returned.length >= 2, `${returned.length} pauses`);
    assert.ok((returned.at(-1) ?? 0) > (returned[0] ?? 0), String(returned));
    const before = slabs.freeBytes;
    body.release();
    assert.ok(slabs.freeBytes >= before + BODY_BYTES, 'the joined memory is lent as well');
    assert.equal(body.pieces[0], step.value);
  });
}

test('small bodies stay in their pieces; small pieces of a large one are joined first', () => {
  const [small] = kept(0, [10, 20, 30]);
  assert.deepEqual(
    small.pieces.map(({ length }) => length),
    [10, 20, 30],
  );
  assert.equal(small.join().next().value?.length, 60);
  const [mixed, whole] = kept(0, [...Array<number>(1000).fill(7), ...piecesOf(BODY_BYTES), 5]);
  assert.ok(Buffer.concat(mixed.pieces).equals(whole));
  const [alone] = kept(0, [100]);
  const [piece] = alone.pieces;
  assert.equal(alone.join().next().value, piece, 'one piece is not copied');
  const [empty] = kept(0, []);
  assert.equal(empty.join().next().value?.length, 0);
});
