/** The elements of each datatype: from values of JSON or of an app's lists to the data of a tensor, and to JSON. */
import { isUtf8 } from 'node:buffer';
import { badBody } from '../../../protocol/errors.js';
import { shown, type Datatype, type Tensor, type TensorData } from '../../../protocol/values/tensor.js';

/** Makes the error of an input or an output; `text` continues its name, such as `Input "x"`. */
export type Refuse = (text: string) => Error;

/** The refusal of the client's input of this name. */
export function refuseInput(name: string): Refuse {
  return (text) => badBody(`Input ${shown(name)}: ${text}.`);
}

type Element = number | bigint | Uint8Array;

/** Data that is being filled. */
export type Filling = { [index: number]: Element };

interface ElementType {
  /** Undefined for a value that the datatype does not have. */
  read(value: unknown): Element | undefined;
  /** The values that it has, for an error text. */
  readonly values: string;
}

function integers(bits: number, isSigned: boolean): ElementType {
  const min = isSigned ? -(2 ** (bits - 1)) : 0;
  const max = 2 ** (isSigned ? bits - 1 : bits) - 1;
  return {
    read: (value) => (isWhole(value) && value >= min && value <= max ? value : undefined),
    values: `whole numbers from ${min} to ${max}`,
  };
}

function isWhole(value: unknown): value is number {
  return Number.isInteger(value);
}

/** 64-bit integers, exact: numbers within 2^53, BigInts beyond. */
function bigIntegers(min: bigint, max: bigint): ElementType {
  return {
    read(value) {
      const integer = Number.isSafeInteger(value) ? BigInt(value as number) : value;
      return typeof integer === 'bigint' && integer >= min && integer <= max ? integer : undefined;
    },
    values: `whole numbers from ${min} to ${max}`,
  };
}

/**
 * `limit`: from there on a number would be rounded to an infinity. An infinity itself is one that somebody wrote. `max`: the
 * largest number, for an error text.
 */
function floats(limit: number, max: string, convert = (value: number): number => value): ElementType {
  return {
    read(value) {
      const number = typeof value === 'bigint' ? Number(value) : value;
      if (typeof number !== 'number') return undefined;
      const size = Math.abs(number);
      return size >= limit && (size !== Infinity || number !== value) ? undefined : convert(number);
    },
    values: `numbers up to ${max}`,
  };
}

const TYPES: Readonly<Record<Datatype, ElementType>> = {
  BOOL: {
    read: (value) => (typeof value === 'boolean' ? Number(value) : undefined),
    values: 'true or false',
  },
  UINT8: integers(8, false),
  UINT16: integers(16, false),
  UINT32: integers(32, false),
  UINT64: bigIntegers(0n, 2n ** 64n - 1n),
  INT8: integers(8, true),
  INT16: integers(16, true),
  INT32: integers(32, true),
  INT64: bigIntegers(-(2n ** 63n), 2n ** 63n - 1n),
  FP16: floats(65_520, '65504', (value) => halfBitsOf(value, 'FP16')),
  BF16: floats(2 ** 128 - 2 ** 119, '3.3895314e+38', (value) => halfBitsOf(value, 'BF16')),
  FP32: floats(2 ** 128 - 2 ** 103, '3.4028235e+38'),
  FP64: floats(Infinity, '1.7976931348623157e+308'),
  BYTES: {
    read(value) {
      if (value instanceof Uint8Array) return value;
      return typeof value === 'string' && isWellFormed(value) ? Buffer.from(value) : undefined;
    },
    values: 'texts',
  },
};

/** Whether UTF-8 can carry the text: half a surrogate pair would become another character. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}

/** Fills elements from `at` on with the values of a list. @throws the error of `refuse` for a value of another kind */
export function fill(
  datatype: Datatype,
  data: Filling,
  at: number,
  values: ArrayLike<unknown>,
  refuse: Refuse,
): void {
  const { read, values: wanted } = TYPES[datatype];
  for (let i = 0; i < values.length; i += 1) {
    const element = read(values[i]);
    if (element === undefined)
      throw refuse(`element ${at + i} is ${shown(values[i])}; ${datatype} has ${wanted}`);
    data[at + i] = element;
  }
}

/**
 * The elements as JSON, separated by commas. 64-bit integers have all their digits; NaN and infinities are Triton's
 * tokens, which JSON does not have. @throws the error of `refuse` if BYTES are not UTF-8
 */
export function elementsText({ datatype, data }: Tensor, refuse: Refuse): string {
  switch (datatype) {
    case 'BOOL':
      return Array.from(data as TensorData['BOOL'], (bit) => (bit === 0 ? 'false' : 'true')).join(',');
    case 'FP16':
    case 'BF16':
      return Array.from(data as Uint16Array, (bits) =>
        numberOfHalfBits(bits, datatype satisfies HalfFloat),
      ).join(',');
    case 'BYTES':
      return textElements(data as TensorData['BYTES'], refuse).join(',');
    default:
      return (data as Float64Array).join(',');
  }
}

function textElements(data: TensorData['BYTES'], refuse: Refuse): string[] {
  return data.map((item, i) => {
    const text = textOf(item);
    if (text !== undefined) return JSON.stringify(text);
    const cure = 'ask for it with the parameter "binary_data": true';
    throw refuse(`element ${i} is not text in UTF-8, which is all that JSON can carry; ${cure}`);
  });
}

function textOf(item: Uint8Array | string): string | undefined {
  if (typeof item === 'string') return isWellFormed(item) ? item : undefined;
  if (!isUtf8(item)) return undefined;
  return Buffer.from(item.buffer, item.byteOffset, item.length).toString();
}

/** The bits of the 16-bit floats, from numbers and back: FP16 is IEEE 754 binary16, BF16 the upper half of binary32. */
type HalfFloat = 'FP16' | 'BF16';

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
