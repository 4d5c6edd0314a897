/** Describes tensors by name as the JSON that apps take and return at their own routes: nested lists. */
import type { TensorSpec } from '../../../protocol/wire/messages.js';
import { FREE, TEXT, objectOf, type JsonSchema } from './operation.js';

/** A tensor of more dimensions is not described. */
const MAX_DIMENSIONS = 32;

export function inputTensors(specs: readonly TensorSpec[]): JsonSchema {
  return named(specs, nestedLists);
}

/** An app may return lists, a typed array, which has no shape, or a `Tensor`. */
export function outputTensors(specs: readonly TensorSpec[]): JsonSchema {
  return named(specs, (spec) => {
    const flat = listOf(elementOf(spec));
    const tensor = objectOf({ datatype: TEXT, shape: listOf({ type: 'integer' }), data: flat });
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
