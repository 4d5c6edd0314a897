/** Describes tensors by name as the JSON that apps take and return at their own routes: nested lists. */
import type { TensorSpec } from '../../../protocol/wire/messages.js';
import { FREE, TEXT, objectOf, type JsonSchema } from './operation.js';

/** A tensor of more dimensions is not described. */
const MAX_DIMENSIONS = 32;

/** All that the workers know, which are those of the Open Inference Protocol V2 and BF16. */
export const DATATYPE: JsonSchema = {
  ...TEXT,
  enum: [
    ...['BOOL', 'UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64'],
    ...['FP16', 'FP32', 'FP64', 'BF16', 'BYTES'],
  ],
};

/** The inputs of every app, and the outputs of a model without code. */
export function listedTensors(specs: readonly TensorSpec[]): JsonSchema {
  return named(specs, nestedLists);
}

/** The outputs of an app of code: it may return lists, a typed array, which has no shape, or a `Tensor`. */
export function outputTensors(specs: readonly TensorSpec[]): JsonSchema {
  return named(specs, (spec) => {
    const flat = listOf(elementOf(spec));
    const tensor = objectOf({ datatype: DATATYPE, shape: listOf({ type: 'integer' }), data: flat });
    if (spec.shape === undefined) return FREE;
    return { anyOf: spec.shape.length === 1 ? [flat, tensor] : [nestedLists(spec), flat, tensor] };
  });
}

function named(specs: readonly TensorSpec[], schemaOf: (spec: TensorSpec) => JsonSchema): JsonSchema {
  if (specs.length === 0) return FREE;
  return objectOf(Object.fromEntries(specs.map((spec) => [spec.name, schemaOf(spec)])));
}

function nestedLists(spec: TensorSpec): JsonSchema {
  if (spec.shape === undefined || spec.shape.length > MAX_DIMENSIONS) return FREE;
  return spec.shape.reduceRight((items, size) => listOf(items, size), elementOf(spec));
}

/** `size`: -1 for any. */
function listOf(items: JsonSchema, size = -1): JsonSchema {
  return { type: 'array', items, ...(size < 0 ? {} : { minItems: size, maxItems: size }) };
}

function elementOf({ datatype }: TensorSpec): JsonSchema {
  if (datatype === 'BOOL') return { type: 'boolean' };
  if (datatype === 'BYTES') return TEXT;
  return { type: /^U?INT/.test(datatype) ? 'integer' : 'number' };
}
