/** The bits of the 16-bit floats, from numbers and back: FP16 is IEEE 754 binary16, BF16 the upper half of binary32. */

export type HalfFloat = 'FP16' | 'BF16';

interface Layout {
  readonly fractionBits: number;
  /** Exponent of the smallest normal number, and of all numbers below it. */
  readonly minExponent: number;
  /** The bits of infinity; larger bits are NaN. */
  readonly infinity: number;
}

const LAYOUTS: Readonly<Record<HalfFloat, Layout>> = {
  FP16: { fractionBits: 10, minExponent: -14, infinity: 0x7c00 },
  BF16: { fractionBits: 7, minExponent: -126, infinity: 0x7f80 },
};

const SIGN = 0x8000;

/** Rounds once, to the nearest, ties to even; a number beyond the largest becomes an infinity. */
export function halfBitsOf(value: number, type: HalfFloat): number {
  const { fractionBits, minExponent, infinity } = LAYOUTS[type];
  if (Number.isNaN(value)) return infinity | (1 << (fractionBits - 1));
  const sign = value < 0 || Object.is(value, -0) ? SIGN : 0;
  const size = Math.abs(value);
  if (size === Infinity) return sign | infinity;
  const exponent = Math.max(exponentOf(size), minExponent);
  const steps = roundToEven(size / 2 ** (exponent - fractionBits));
  // The steps of a normal number have the leading 1 in them, which the exponent's lowest bit absorbs; so does a carry.
  const bits = steps + ((exponent - minExponent) << fractionBits);
  return sign | Math.min(bits, infinity);
}

const float64 = new Float64Array(1);
const words = new Uint32Array(float64.buffer);

/** Exponent of a finite number that is not negative; that of the smallest normal one for subnormals and zero. */
function exponentOf(value: number): number {
  float64[0] = value;
  return (((words[1] as number) >>> 20) & 0x7ff) - 1023;
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Exact. */
export function numberOfHalfBits(bits: number, type: HalfFloat): number {
  const { fractionBits, minExponent, infinity } = LAYOUTS[type];
  const size = bits & ~SIGN;
  const sign = bits & SIGN ? -1 : 1;
  if (size >= infinity) return size === infinity ? sign * Infinity : NaN;
  const fraction = size & ((1 << fractionBits) - 1);
  const exponent = size >>> fractionBits;
  if (exponent === 0) return sign * fraction * 2 ** (minExponent - fractionBits);
  return sign * (fraction + (1 << fractionBits)) * 2 ** (exponent - 1 + minExponent - fractionBits);
}
