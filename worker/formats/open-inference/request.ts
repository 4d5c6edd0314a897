/** Reads requests of the Open Inference Protocol: JSON, with the tensors in it or, as raw bytes, behind it. */
import { badBody } from '../../../protocol/errors.js';
import {
  type Fields,
  type Signature,
  DATATYPES,
  elementCount,
  isDatatype,
  isObject,
  kindOf,
  problemOfShape,
  shown,
  Tensor,
} from '../../../protocol/values/tensor.js';
import type { CallParams } from '../../api/types.js';
import { jsonTextOf } from '../json.js';
import type { Refuse } from './elements.js';
import { readExactJson, isInexactRequest } from './exact-json.js';
import { tensorOfList } from './nested-data.js';
import { tensorOfBytes } from './raw-data.js';
import { rawInput } from './signed-inputs.js';

export interface InferRequest {
  /** Empty if there is none. */
  readonly id: string;
  readonly inputs: Readonly<Record<string, Tensor>>;
  /** The request's parameters, without those of the protocol. */
  readonly params: CallParams;
  readonly wanted: WantedOutputs;
}

/** The outputs that the client asked for, and the encoding of each. */
export interface WantedOutputs {
  /** Whether each leaves as bytes, by name; null for all outputs. */
  readonly named: ReadonlyMap<string, boolean> | null;
  /** Whether the outputs leave as bytes if none are named. */
  readonly binary: boolean;
}

/**
 * Bodies up to this size may be views of a read buffer that a tensor must not keep alive; larger ones have their own
 * memory.
 */
const OWN_BUFFER_BYTES = 64 * 1024;

/**
 * `jsonBytes`: the header `Inference-Header-Content-Length`, or null without it. 0: the whole body is the one input of
 * `signature`. @throws SERVE_BAD_BODY that names the tensor
 */
export function readRequest(
  body: Buffer,
  jsonBytes: number | null,
  signature: Signature | null,
): InferRequest {
  if (jsonBytes === 0) return rawRequest(body, signature);
  if (jsonBytes !== null && jsonBytes > body.length)
    throw badBody(`Inference-Header-Content-Length is ${jsonBytes}, but the body has ${body.length} bytes.`);
  const what = jsonBytes === null ? 'The body' : 'The JSON at the beginning of the body';
  const text = jsonTextOf(body.subarray(0, jsonBytes ?? body.length), what);
  const request = readExactJson(text, what, isInexactRequest);
  if (!isObject(request)) throw badBody(`${what} must be an object with "inputs", not ${kindOf(request)}.`);
  const { id = null, inputs, outputs = null, parameters } = request;
  if (id !== null && typeof id !== 'string')
    throw badBody(`The request's "id" must be text, not ${kindOf(id)}.`);
  const { params, binary } = readParameters(parameters);
  const wanted = readWanted(outputs ?? [], binary);
  if (!Array.isArray(inputs))
    throw badBody(`The request must have "inputs", a list of tensors, not ${kindOf(inputs)}.`);
  const left = jsonBytes === null ? null : body.subarray(jsonBytes);
  const raw = { left, mayView: left !== null && left.length > OWN_BUFFER_BYTES };
  const tensors = byName(inputs, 'Input', (input, refuse) => readInput(input, raw, refuse));
  const more = raw.left?.length ?? 0;
  if (more > 0) throw badBody(`The body has ${more} more bytes than its inputs' binary_data_size.`);
  return { id: id ?? '', inputs: Object.fromEntries(tensors), params, wanted };
}

function rawRequest(body: Buffer, signature: Signature | null): InferRequest {
  const inputs = rawInput(body, signature, body.length > OWN_BUFFER_BYTES);
  return { id: '', inputs, params: {}, wanted: ALL_AS_BYTES };
}

const ALL_AS_BYTES: WantedOutputs = { named: null, binary: true };

/** The bytes behind the JSON, of tensors that are not read yet; null if the request has the header of none. */
interface Raw {
  left: Buffer | null;
  readonly mayView: boolean;
}

function readInput(input: Fields, raw: Raw, refuse: Refuse): Tensor {
  const { datatype, shape, data } = input;
  if (!isDatatype(datatype))
    throw refuse(`${shown(datatype)} is not a datatype; there are ${DATATYPES.join(', ')}`);
  const problem = problemOfShape(shape) ?? problemOfEmptyShape(shape as readonly number[]);
  if (problem !== null) throw refuse(problem);
  const { binary_data_size: size, shared_memory_region: region } = parametersOf(input, refuse);
  if (region !== undefined) throw refuse('shared memory is not supported; send the data');
  const sizes = shape as readonly number[];
  if (data === undefined || data === null)
    return tensorOfBytes(datatype, sizes, takeBytes(raw, size, refuse), raw.mayView, refuse);
  if (size !== undefined) throw refuse('it has both data and binary_data_size');
  return tensorOfList(datatype, sizes, data, refuse);
}

/** Takes the next bytes. */
function takeBytes(raw: Raw, size: unknown, refuse: Refuse): Buffer {
  if (size === undefined) throw refuse('it has no data');
  if (!Number.isSafeInteger(size) || (size as number) < 0)
    throw refuse(`binary_data_size must be a whole number of bytes, not ${shown(size)}`);
  const { left } = raw;
  if (left === null)
    throw refuse(
      'binary_data_size needs the header Inference-Header-Content-Length with the length of the JSON',
    );
  if ((size as number) > left.length)
    throw refuse(`binary_data_size is ${size as number}, but only ${left.length} bytes of the body are left`);
  raw.left = left.subarray(size as number);
  return left.subarray(0, size as number);
}

/**
 * Largest product of the other sizes of a tensor without elements. Nothing in the body stands for them, but a model
 * may still make outputs of so many rows: a body of 200 bytes would fill the memory. An empty cache of 16 prompts with
 * 32 heads of 128 numbers has 65,536.
 */
const MAX_EMPTY_SIZE = 2 ** 20;

function problemOfEmptyShape(shape: readonly number[]): string | null {
  if (elementCount(shape) > 0 || elementCount(shape.filter((size) => size > 0)) <= MAX_EMPTY_SIZE)
    return null;
  return `the shape ${shown(shape)} has no elements; the product of its other sizes may be ${MAX_EMPTY_SIZE} at most`;
}

/** Reads each item of a list, by its name. @throws SERVE_BAD_BODY for a name that is missing, or there twice */
function byName<T>(
  list: readonly unknown[],
  kind: 'Input' | 'Output',
  read: (item: Fields, refuse: Refuse) => T,
): Map<string, T> {
  const named = new Map<string, T>();
  for (const [i, item] of list.entries()) {
    if (!isObject(item)) throw badBody(`${kind} ${i} must be an object with a "name", not ${kindOf(item)}.`);
    const { name } = item;
    if (typeof name !== 'string' || name === '')
      throw badBody(`${kind} ${i} must have a "name" that is text, not ${shown(name)}.`);
    if (named.has(name)) throw badBody(`${kind} ${shown(name)} is there twice.`);
    named.set(
      name,
      read(item, (text) => badBody(`${kind} ${shown(name)}: ${text}.`)),
    );
  }
  return named;
}

function readWanted(outputs: unknown, binary: boolean): WantedOutputs {
  if (!Array.isArray(outputs))
    throw badBody(`The request's "outputs" must be a list, not ${kindOf(outputs)}.`);
  if (outputs.length === 0) return { named: null, binary };
  return { named: byName(outputs, 'Output', (output, refuse) => isBinary(output, binary, refuse)), binary };
}

/** The switch of one output counts before that of the request. */
function isBinary(output: Fields, byDefault: boolean, refuse: Refuse): boolean {
  const {
    binary_data: own = byDefault,
    classification,
    shared_memory_region: region,
  } = parametersOf(output, refuse);
  if (classification !== undefined)
    throw refuse('classification is not supported; the output has all values');
  if (region !== undefined) throw refuse('shared memory is not supported');
  if (typeof own !== 'boolean') throw refuse(`binary_data must be true or false, not ${shown(own)}`);
  return own;
}

function readParameters(parameters: unknown): { params: CallParams; binary: boolean } {
  const given = parametersOf({ parameters }, (text) => badBody(`The request's ${text}.`));
  const { binary_data_output: binary = false, priority = 0, timeout = 0, ...params } = given;
  if (typeof binary !== 'boolean')
    throw badBody(`The parameter binary_data_output must be true or false, not ${shown(binary)}.`);
  for (const [name, value] of Object.entries({ priority, timeout }))
    if (!isWholeNumber(value))
      throw badBody(`The parameter ${name} must be a whole number from 0, not ${shown(value)}.`);
  const { sequence_id: sequence = 0 } = params;
  if (sequence !== 0 && sequence !== '')
    throw badBody(
      `The parameter sequence_id is ${shown(sequence)}, but this server has no sequences: each call stands alone. Send the state with it, or keep it in the app under a parameter of another name.`,
    );
  for (const name of Object.keys(params)) {
    if (name.startsWith('triton_'))
      throw badBody(`The parameter ${shown(name)} is reserved: no name may begin with "triton_".`);
  }
  return { params: checkedParameters(params), binary };
}

/** Returns parameters for the app. @throws SERVE_BAD_BODY for one that is a list, an object or null */
export function checkedParameters(params: Fields): CallParams {
  for (const [name, value] of Object.entries(params))
    if (!['string', 'number', 'bigint', 'boolean'].includes(typeof value))
      throw badBody(
        `The parameter ${shown(name)} must be text, a number, true or false, not ${kindOf(value)}.`,
      );
  return params as CallParams;
}

function isWholeNumber(value: unknown): boolean {
  return (typeof value === 'bigint' || Number.isSafeInteger(value)) && (value as number | bigint) >= 0;
}

/** Clients write null for none. */
export function parametersOf({ parameters }: Fields, refuse: Refuse): Fields {
  if (parameters === undefined || parameters === null) return {};
  if (isObject(parameters)) return parameters;
  throw refuse(`parameters must be an object, not ${kindOf(parameters)}`);
}
