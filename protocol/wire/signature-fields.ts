/** Decodes the signature of an app in a `loaded` message. */
import { Fields, malformed } from './fields.js';
import type { Signature, TensorSpec } from './messages.js';

/** @throws SERVE_PROTOCOL */
export function readSignature(field: unknown): Signature {
  const { inputs, outputs } = new Fields([field]).object(0);
  return { inputs: readSpecs(inputs), outputs: readSpecs(outputs) };
}

function readSpecs(specs: unknown): readonly TensorSpec[] {
  if (!Array.isArray(specs)) throw malformed('a signature has no list of tensors');
  return specs.map(readSpec);
}

function readSpec(spec: unknown): TensorSpec {
  const { name, datatype, shape } = new Fields([spec]).object(0);
  const fields = new Fields([name, datatype]);
  if (shape === undefined) return { name: fields.string(0), datatype: fields.string(1) };
  if (!Array.isArray(shape) || !shape.every(isSize)) throw malformed('a tensor of a signature has no shape');
  return { name: fields.string(0), datatype: fields.string(1), shape };
}

function isSize(size: unknown): size is number {
  return Number.isSafeInteger(size) && (size as number) >= -1;
}
