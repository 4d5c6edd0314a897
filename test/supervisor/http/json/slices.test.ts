import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { test } from 'node:test';
import fc from 'fast-check';
import { escapeNonAscii } from '../../../../protocol/text/charsets.js';
import {
  SLICE_BYTES,
  copySlices,
  slicesOf,
  writeAscii,
  writeString,
} from '../../../../supervisor/http/json/slices.js';
import { checkJson } from '../../../../supervisor/http/json/top-level-fields.js';

/** Runs work to its end; returns its result and how often it paused. */
function run<Result>(work: Generator<void, Result>): { result: Result; pauses: number } {
  for (let pauses = 0; ; pauses += 1) {
    const { done, value } = work.next();
    if (done === true) return { result: value, pauses };
  }
}

/** Text of a length so that the next character lies across the end of the first slice. */
const before = fc.integer({ min: SLICE_BYTES - 12, max: SLICE_BYTES }).map((length) => 'x'.repeat(length));
const across = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });

test('slices cover all bytes in order, and split no character', () => {
  fc.assert(
    fc.property(before, across, (start, text) => {
      const bytes = Buffer.from(start + text);
      const slices = [...slicesOf(bytes)];
      assert.ok(Buffer.concat(slices).equals(bytes));
      assert.ok(slices.every((slice) => isUtf8(slice) && slice.length <= SLICE_BYTES));
    }),
    { numRuns: 50 },
  );
  assert.deepEqual([...slicesOf(Buffer.alloc(0))], []);
});

test('checkJson agrees with isUtf8 and JSON.parse on any bytes, wherever slices end', () => {
  const bytes = fc.oneof(
    across.map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 6 }),
  );
  fc.assert(
    fc.property(before, bytes, fc.constantFrom('"', ''), (start, middle, close) => {
      const body = Buffer.concat([Buffer.from(`"${start.slice(1)}`), middle, Buffer.from(close)]);
      assert.equal(run(checkJson(body)).result, isUtf8(body) && parses(body));
    }),
    { numRuns: 100 },
  );
});

function parses(body: Buffer): boolean {
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}

test('writeString writes what JSON.parse reads as the same text, with pauses in a long one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 12 }), across, (gap, text) => {
      const long = `${'\x1b'.repeat(64 * 1024 - gap)}${text}${'x'.repeat(4 * 2 ** 20)}`;
      const { result, pauses } = run(writeString(long));
      assert.equal(JSON.parse(Buffer.concat(result).toString()), long);
      assert.ok(pauses >= 64 && result.every(({ length }) => length <= 384 * 1024));
    }),
    { numRuns: 20 },
  );
  assert.deepEqual(run(writeString('')), { result: [Buffer.from('"'), Buffer.from('"')], pauses: 0 });
});

test('writeAscii keeps the value that JSON.parse reads, and copies no ASCII slice', () => {
  fc.assert(
    fc.property(before, across, (start, text) => {
      const json = JSON.stringify(start + text);
      const written = Buffer.concat(run(writeAscii(Buffer.from(json))).result).toString('latin1');
      assert.equal(written, escapeNonAscii(json));
      assert.equal(JSON.parse(written), start + text);
    }),
    { numRuns: 50 },
  );
  const ascii = Buffer.alloc(3 * SLICE_BYTES, 'x');
  for (const piece of run(writeAscii(ascii)).result) assert.equal(piece.buffer, ascii.buffer);
});

test('parts are copied, in slices', () => {
  const whole = Buffer.alloc(5 * SLICE_BYTES + 7, 'abcdefg');
  assert.equal(run(copySlices(whole)).pauses, 6);
  for (const part of [whole, whole.subarray(3, 9), Buffer.alloc(0)]) {
    const copy = run(copySlices(part)).result;
    assert.ok(copy.equals(part));
    assert.notEqual(copy.buffer, part.buffer);
  }
});

test('large work pauses after each slice', () => {
  const json = Buffer.from(JSON.stringify('x'.repeat(10 * SLICE_BYTES)));
  assert.ok(run(checkJson(json)).pauses >= 20, 'ten for UTF-8, ten for JSON');
  assert.ok(run(writeAscii(json)).pauses >= 10);
});
