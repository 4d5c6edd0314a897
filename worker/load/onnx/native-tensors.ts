/** Tensors of onnxruntime, from ours and back. Their data is not copied. */
import { Tensor, type Datatype } from '../../api/tensor.js';
import type { Onnxruntime } from './onnxruntime.js';
import { DATATYPES, TYPES } from './session-signature.js';

/** BYTES must be texts (`whole-texts.ts`). */
export function nativeTensor(
  { Tensor: Native }: typeof Onnxruntime,
  { datatype, shape, data }: Tensor,
): Onnxruntime.Tensor {
  return new Native(TYPES[datatype] as 'float32', data as Float32Array, shape);
}

export function ownTensor({ type, dims, data }: Onnxruntime.Tensor): Tensor {
  return new Tensor(DATATYPES[type] as Datatype, dims, data);
}
