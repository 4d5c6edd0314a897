/** Reads and checks the export `signature`: the names, datatypes and shapes of an app's inputs and outputs. */
import {
  type Signature,
  type TensorSpec,
  DATATYPES,
  isDatatype,
  kindOf,
  MAX_DIMENSIONS,
  shown,
} from '../../protocol/values/tensor.js';

/** Returns the app's signature, if it exports one. @throws a TypeError that names the tensor if it is no signature */
export function signatureOf(exports: Readonly<Record<string, unknown>>): { signature?: Signature } {
  const given = exports['signature'];
  if (given === undefined) return {};
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw wrong(`not ${kindOf(given)}`);
  const { inputs, outputs } = given as Readonly<Record<string, unknown>>;
  return { signature: { inputs: specsOf(inputs, 'inputs'), outputs: specsOf(outputs, 'outputs') } };
}

function wrong(problem: string): TypeError {
  const example = "{ inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }], outputs: […] }";
  return new TypeError(`export \`signature\` must be an object such as ${example}, ${problem}`);
}

function specsOf(given: unknown, key: 'inputs' | 'outputs'): readonly TensorSpec[] {
  if (!Array.isArray(given)) throw wrong(`but \`${key}\` is ${kindOf(given)}`);
  const specs = given.map((item: unknown, i) => specOf(item, `${key}[${i}]`));
  const twice = specs.find(({ name }, i) => specs.findIndex((other) => other.name === name) < i);
  if (twice === undefined) return specs;
  throw new TypeError(`export \`signature\`: \`${key}\` has ${shown(twice.name)} twice`);
}

function specOf(given: unknown, place: string): TensorSpec {
  const { name, datatype, shape } = (given ?? {}) as Readonly<Record<string, unknown>>;
  const fail = (problem: string): never => {
    throw new TypeError(`export \`signature\`: ${place}.${problem}`);
  };
  if (typeof name !== 'string' || name === '') return fail(`name must be text, not ${shown(name)}`);
  if (!isDatatype(datatype)) return fail(`datatype is ${shown(datatype)}; there are ${DATATYPES.join(', ')}`);
  if (shape === undefined) return { name, datatype };
  const isShape = Array.isArray(shape) && shape.length <= MAX_DIMENSIONS && Array.from(shape).every(isSize);
  if (!isShape) return fail(`shape must be a list of sizes, with -1 for a free one, not ${shown(shape)}`);
  return { name, datatype, shape: [...(shape as readonly number[])] };
}

function isSize(size: unknown): boolean {
  return Number.isSafeInteger(size) && (size as number) >= -1;
}
