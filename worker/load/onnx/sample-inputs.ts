/** Inputs for a model without an example: to warm it up, and to compare it with its optimized graph. */
import {
  elementCount,
  newData,
  Tensor,
  type TensorData,
  type Signature,
  type TensorSpec,
} from '../../../protocol/values/tensor.js';
import { fill, type Filling } from '../../formats/open-inference/elements.js';
import { FREE } from '../../formats/open-inference/signed-inputs.js';
import type { Tensors } from './rows.js';

/**
 * Inputs of so many rows, of which no two neighbours are alike: floats from -1 to 1, and 0 or 1 for all others, which are
 * likely to be valid where a number is an index; texts are empty. `isZero`: only zeros. Free dimensions beside the rows
 * are 1.
 */
export function sampleInputs({ inputs }: Signature, rows: number, isZero: boolean): Tensors {
  return Object.fromEntries(inputs.map((spec) => [spec.name, sampleOf(spec, rows, isZero)]));
}

function sampleOf({ datatype, shape = [] }: TensorSpec, rows: number, isZero: boolean): Tensor {
  const sizes = shape.map((size, i) => (size !== FREE ? size : i === 0 ? rows : 1));
  const count = elementCount(sizes);
  if (datatype === 'BYTES') return new Tensor(datatype, sizes, Array<string>(count).fill(''));
  const data = newData(datatype, count);
  const values = Array.from({ length: isZero ? 0 : count }, (_, i) => valueOf(datatype, i));
  fill(datatype, data as Filling, 0, values, (text) => new Error(text));
  return new Tensor(datatype, sizes, data as TensorData[typeof datatype]);
}

function valueOf(datatype: TensorSpec['datatype'], i: number): unknown {
  if (datatype === 'BOOL') return i % 2 === 1;
  if (/^(?:FP|BF)/.test(datatype)) return ((i * 7919) % 2003) / 1001 - (i === 0 ? 0 : 1);
  return i % 2;
}
