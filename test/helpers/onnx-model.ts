/**
 * Writes small ONNX models for tests, so that none is committed as a binary: enough of the protobuf of
 * onnx/onnx.proto for inputs, outputs, nodes, initializers and external data.
 */
import { writeFileSync } from 'node:fs';

/** Numbers of `TensorProto.DataType`. */
export const ONNX_TYPES = {
  FP32: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  BYTES: 8,
  BOOL: 9,
  FP16: 10,
  FP64: 11,
  UINT32: 12,
  UINT64: 13,
  BF16: 16,
} as const;

export type OnnxType = keyof typeof ONNX_TYPES;

/** A named tensor; text in a shape is the symbol of a free dimension. */
export interface OnnxValue {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly (number | string)[];
  /** Makes it a sequence of such tensors, which is no tensor. */
  readonly isSequence?: boolean;
}

export interface OnnxNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Whole numbers, lists of them, or floats as `{ float }`. */
  readonly attributes?: Readonly<Record<string, number | readonly number[] | { readonly float: number }>>;
}

export interface OnnxWeights {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly number[];
  /** The elements' bytes, little-endian; null for those in another file. */
  readonly bytes: Uint8Array | null;
  /** The place of elements outside of the model: path relative to it, offset and length in bytes. */
  readonly external?: { readonly location: string; readonly offset: number; readonly length: number };
}

export interface OnnxModel {
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly nodes: readonly OnnxNode[];
  readonly weights?: readonly OnnxWeights[];
  /** Version of the operator set; 17 by default. */
  readonly opset?: number;
}

export function writeOnnx(path: string, model: OnnxModel): string {
  writeFileSync(path, onnxBytes(model));
  return path;
}

/** A model `y = x` for tensors of one datatype. */
export function identity(type: OnnxType, shape: readonly (number | string)[] = ['batch', 2]): OnnxModel {
  return {
    inputs: [{ name: 'x', type, shape }],
    outputs: [{ name: 'y', type, shape }],
    nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
  };
}

export function onnxBytes({ inputs, outputs, nodes, weights = [], opset = 17 }: OnnxModel): Buffer {
  const graph = Buffer.concat([
    ...nodes.map((node) => field(1, nodeBytes(node))),
    field(2, text('graph')),
    ...weights.map((each) => field(5, weightBytes(each))),
    ...inputs.map((value) => field(11, valueBytes(value))),
    ...outputs.map((value) => field(12, valueBytes(value))),
  ]);
  const opsets = field(8, Buffer.concat([field(1, text('')), integer(2, opset)]));
  return Buffer.concat([integer(1, 8), field(7, graph), opsets]);
}

function nodeBytes({ op, inputs, outputs, attributes = {} }: OnnxNode): Buffer {
  return Buffer.concat([
    ...inputs.map((name) => field(1, text(name))),
    ...outputs.map((name) => field(2, text(name))),
    field(4, text(op)),
    ...Object.entries(attributes).map(([name, value]) => field(5, attributeBytes(name, value))),
  ]);
}

function attributeBytes(name: string, value: number | readonly number[] | { float: number }): Buffer {
  const named = field(1, text(name));
  if (typeof value === 'number') return Buffer.concat([named, integer(3, value), integer(20, 2)]);
  if ('float' in value) return Buffer.concat([named, float(2, value.float), integer(20, 1)]);
  return Buffer.concat([named, ...value.map((each) => integer(8, each)), integer(20, 7)]);
}

function valueBytes({ name, type, shape, isSequence = false }: OnnxValue): Buffer {
  const sizes = shape.map((size) =>
    field(1, typeof size === 'number' ? integer(1, size) : field(2, text(size))),
  );
  const tensor = Buffer.concat([integer(1, ONNX_TYPES[type]), field(2, Buffer.concat(sizes))]);
  const whole = isSequence ? field(4, field(1, field(1, tensor))) : field(1, tensor);
  return Buffer.concat([field(1, text(name)), field(2, whole)]);
}

function weightBytes({ name, type, shape, bytes, external }: OnnxWeights): Buffer {
  const entries = Object.entries(external ?? {}).map(([key, value]) =>
    field(13, Buffer.concat([field(1, text(key)), field(2, text(String(value)))])),
  );
  return Buffer.concat([
    ...shape.map((size) => integer(1, size)),
    integer(2, ONNX_TYPES[type]),
    field(8, text(name)),
    ...(bytes === null ? [] : [field(9, Buffer.from(bytes))]),
    ...entries,
    ...(external === undefined ? [] : [integer(14, 1)]),
  ]);
}

function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

function integer(number: number, value: number): Buffer {
  return Buffer.concat([varint(number << 3), varint(value)]);
}

function float(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([varint((number << 3) | 5), bytes]);
}

/** Negative numbers are their 64 bits in two's complement. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
}

function text(value: string): Buffer {
  return Buffer.from(value);
}
