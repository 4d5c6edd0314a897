/**
 * Writes small ONNX models for tests, so that none is committed as a binary: enough of the protobuf of
 * onnx/onnx.proto for inputs, outputs, nodes, initializers and external data.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { eventually } from './server.js';

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
  FLOAT8E8M0: 24,
  UINT2: 25,
  INT2: 26,
  UINT4: 21,
  INT4: 22,
  FLOAT4: 23,
} as const;

export type OnnxType = keyof typeof ONNX_TYPES;

/** A named tensor; text in a shape is the symbol of a free dimension. */
export interface OnnxValue {
  readonly name: string;
  readonly type: OnnxType;
  /** Null if the model does not say how many dimensions it has. */
  readonly shape: readonly (number | string)[] | null;
  /** Makes it a sequence of such tensors, which is no tensor. */
  readonly isSequence?: boolean;
}

export interface OnnxNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Whole numbers, lists of them, floats as `{ float }`, or the graph of a branch or a loop. */
  readonly attributes?: Readonly<Record<string, OnnxAttribute>>;
  /** The domain of a function of the model. */
  readonly domain?: string;
}

type OnnxAttribute = number | readonly number[] | { readonly float: number } | { readonly graph: OnnxGraph };

export interface OnnxWeights {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly number[];
  /** The elements' bytes, little-endian; null for those in another file. */
  readonly bytes: Uint8Array | null;
  /** The place of elements outside of the model: path relative to it, offset and length in bytes. */
  readonly external?: { readonly location: string; readonly offset: number; readonly length: number };
}

export interface OnnxGraph {
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly nodes: readonly OnnxNode[];
  readonly weights?: readonly OnnxWeights[];
}

/** A function of the model, in the domain `own`. */
export interface OnnxFunction {
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly nodes: readonly OnnxNode[];
}

export interface OnnxModel extends OnnxGraph {
  readonly functions?: readonly OnnxFunction[];
  /** Version of the operator set; 17 by default. */
  readonly opset?: number;
}

export function writeOnnx(path: string, model: OnnxModel): string {
  writeFileSync(path, onnxBytes(model));
  return path;
}

/** A model `y = x` for tensors of one datatype. */
export function identity(type: OnnxType, shape: OnnxValue['shape'] = ['batch', 2]): OnnxModel {
  return {
    inputs: [{ name: 'x', type, shape }],
    outputs: [{ name: 'y', type, shape }],
    nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
  };
}

export function onnxBytes({ opset = 17, functions = [], ...graph }: OnnxModel): Buffer {
  const imports = opsets(functions.length === 0 ? { '': opset } : { '': opset, [OWN]: 1 });
  return Buffer.concat([
    integer(1, 8),
    field(7, graphBytes(graph)),
    ...imports.map((each) => field(8, each)),
    ...functions.map((each) => field(25, functionBytes(each, opset))),
  ]);
}

/** The domain of the functions of a model. */
const OWN = 'own';

function opsets(versions: Readonly<Record<string, number>>): Buffer[] {
  return Object.entries(versions).map(([domain, version]) =>
    Buffer.concat([field(1, text(domain)), integer(2, version)]),
  );
}

function graphBytes({ inputs, outputs, nodes, weights = [] }: OnnxGraph): Buffer {
  return Buffer.concat([
    ...nodes.map((node) => field(1, nodeBytes(node))),
    field(2, text('graph')),
    ...weights.map((each) => field(5, weightBytes(each))),
    ...inputs.map((value) => field(11, valueBytes(value))),
    ...outputs.map((value) => field(12, valueBytes(value))),
  ]);
}

function functionBytes({ name, inputs, outputs, nodes }: OnnxFunction, opset: number): Buffer {
  return Buffer.concat([
    field(1, text(name)),
    ...inputs.map((input) => field(4, text(input))),
    ...outputs.map((output) => field(5, text(output))),
    ...nodes.map((node) => field(7, nodeBytes(node))),
    ...opsets({ '': opset }).map((each) => field(9, each)),
    field(10, text(OWN)),
  ]);
}

function nodeBytes({ op, inputs, outputs, attributes = {}, domain = '' }: OnnxNode): Buffer {
  return Buffer.concat([
    ...inputs.map((name) => field(1, text(name))),
    ...outputs.map((name) => field(2, text(name))),
    field(4, text(op)),
    ...Object.entries(attributes).map(([name, value]) => field(5, attributeBytes(name, value))),
    ...(domain === '' ? [] : [field(7, text(domain))]),
  ]);
}

function attributeBytes(name: string, value: OnnxAttribute): Buffer {
  const named = field(1, text(name));
  if (typeof value === 'number') return Buffer.concat([named, integer(3, value), integer(20, 2)]);
  if ('float' in value) return Buffer.concat([named, float(2, value.float), integer(20, 1)]);
  if ('graph' in value) return Buffer.concat([named, field(6, graphBytes(value.graph)), integer(20, 5)]);
  return Buffer.concat([named, ...value.map((each) => integer(8, each)), integer(20, 7)]);
}

function valueBytes({ name, type, shape, isSequence = false }: OnnxValue): Buffer {
  const sizes = shape?.map((size) =>
    field(1, typeof size === 'number' ? integer(1, size) : field(2, text(size))),
  );
  const tensor = Buffer.concat([
    integer(1, ONNX_TYPES[type]),
    ...(sizes === undefined ? [] : [field(2, Buffer.concat(sizes))]),
  ]);
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

/** `y = sum(c * c)` for a matrix c of the given size: a second or more for some thousands. */
export const SLOW: OnnxModel = {
  inputs: [{ name: 'size', type: 'INT64', shape: [2] }],
  outputs: [{ name: 'y', type: 'FP32', shape: [] }],
  nodes: [
    { op: 'ConstantOfShape', inputs: ['size'], outputs: ['c'] },
    { op: 'MatMul', inputs: ['c', 'c'], outputs: ['p'] },
    { op: 'ReduceSum', inputs: ['p'], outputs: ['y'], attributes: { keepdims: 0 } },
  ],
};

/** Resolves once the worker computes: a call that it only holds and has not begun would run on the next one when it dies. */
export async function untilComputing(pid: number): Promise<void> {
  const before = cpuTicks(pid);
  await eventually(
    () => cpuTicks(pid) > before + 50,
    60_000,
    () => `process ${pid} has taken ${cpuTicks(pid) - before} hundredths of a second of CPU`,
  );
}

/** CPU time of a process, in hundredths of a second. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
