import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { halfBitsOf, numberOfHalfBits } from '../../../../worker/formats/open-inference/elements.js';

for (const [type, value, bits] of [
  ['FP16', 1, 0x3c00],
  ['FP16', -2, 0xc000],
  ['FP16', 65504, 0x7bff], // the largest
  ['FP16', 65519.99, 0x7bff],
  ['FP16', 65520, 0x7c00],
  ['FP16', 2 ** -14, 0x0400], // the smallest normal number
  ['FP16', 2 ** -24, 0x0001],
  ['FP16', 2 ** -25, 0x0000], // a tie, to even
  ['FP16', 1.5 * 2 ** -24, 0x0002],
  ['FP16', 1 + 2 ** -11, 0x3c00], // a tie, to even
  ['FP16', 1 + 2 ** -11 + 2 ** -40, 0x3c01], // FP32 between would make a tie of it
  ['FP16', 1 + 3 * 2 ** -11, 0x3c02],
  ['BF16', 1, 0x3f80],
  ['BF16', 3.140625, 0x4049],
  ['BF16', 1 + 2 ** -8, 0x3f80], // a tie, to even
  ['BF16', 3.39e38, 0x7f7f],
  ['BF16', 1e39, 0x7f80],
  ['BF16', -1e39, 0xff80],
  ['BF16', 2 ** -133, 0x0001],
  ['BF16', 5e-324, 0x0000],
  ['BF16', Infinity, 0x7f80],
  ['FP16', -Infinity, 0xfc00],
  ['FP16', -0, 0x8000],
  ['FP16', NaN, 0x7e00],
  ['BF16', NaN, 0x7fc0],
] as const)
  test(`${value} as ${type} is 0x${bits.toString(16)}`, () => assert.equal(halfBitsOf(value, type), bits));

for (const type of ['FP16', 'BF16'] as const) {
  test(`all 65,536 patterns of ${type} come back from their number, but for the kinds of NaN`, () => {
    for (let bits = 0; bits <= 0xffff; bits += 1) {
      const value = numberOfHalfBits(bits, type);
      if (Number.isNaN(value)) continue;
      assert.equal(halfBitsOf(value, type), bits);
    }
  });

  test(`a number becomes the nearest ${type}`, () => {
    fc.assert(
      fc.property(fc.double({ min: -1e38, max: 1e38, noNaN: true }), (value) => {
        const bits = halfBitsOf(value, type);
        const near = numberOfHalfBits(bits, type);
        if (!Number.isFinite(near)) return;
        const size = bits & 0x7fff;
        for (const other of [size - 1, size + 1].filter((one) => one >= 0)) {
          const far = numberOfHalfBits(other | (bits & 0x8000), type);
          assert.ok(Math.abs(value - near) <= Math.abs(value - far), `${value}: ${near}, ${far}`);
        }
      }),
    );
  });
}
