/** Tensors of onnxruntime, from ours and back. */
import { isUtf8 } from 'node:buffer';
import { ServeError } from '../../../protocol/errors.js';
import { shown, Tensor, type Datatype, type TensorData } from '../../api/tensor.js';
import type { Onnxruntime } from './onnxruntime.js';
import { DATATYPES, TYPES } from './session-signature.js';

/** @throws SERVE_BAD_BODY for BYTES that onnxruntime would change, because it takes only texts in UTF-8 without NUL */
export function nativeTensor(
  { Tensor: Native }: typeof Onnxruntime,
  name: string,
  { datatype, shape, data }: Tensor,
): Onnxruntime.Tensor {
  const type = TYPES[datatype] as 'float32';
  const given = datatype === 'BYTES' ? textsOf(name, data as TensorData['BYTES']) : data;
  return new Native(type, given as Float32Array, shape);
}

function textsOf(name: string, data: TensorData['BYTES']): string[] {
  return data.map((item, i) => {
    const refuse = (problem: string): ServeError =>
      new ServeError('SERVE_BAD_BODY', `Input ${shown(name)}: element ${i} ${problem}.`);
    if (typeof item !== 'string' && !isUtf8(item)) throw refuse('is not UTF-8, which the model needs');
    const text =
      typeof item === 'string' ? item : Buffer.from(item.buffer, item.byteOffset, item.length).toString();
    if (text.includes('\0')) throw refuse('has a NUL, where onnxruntime would cut it off');
    return text;
  });
}

/** The data is not copied. */
export function ownTensor({ type, dims, data }: Onnxruntime.Tensor): Tensor {
  return new Tensor(DATATYPES[type] as Datatype, dims, data as TensorData[Datatype]);
}
