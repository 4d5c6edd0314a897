/** Tensors of onnxruntime, from ours and back. Their data is not copied. */
import { isUtf8 } from 'node:buffer';
import { DATATYPES as ALL, Tensor, type Datatype, type TensorData } from '../../../protocol/values/tensor.js';
import type { Refuse } from '../../formats/open-inference/elements.js';
import type { Onnxruntime } from './onnxruntime.js';

/** The types of onnxruntime-node's tensors, by datatype; it has none for BF16. */
const TYPES = new Map<Datatype, string>(
  ALL.filter((datatype) => datatype !== 'BF16').map((datatype) => [datatype, typeOf(datatype)]),
);

/** The datatypes by those types. */
export const DATATYPES = new Map([...TYPES].map(([datatype, type]) => [type, datatype] as const));

function typeOf(datatype: Datatype): string {
  return datatype === 'BYTES' ? 'string' : datatype.toLowerCase().replace('fp', 'float');
}

/** BYTES must be texts (`withWholeTexts`). */
export function nativeTensor(
  { Tensor: Native }: typeof Onnxruntime,
  { datatype, shape, data }: Tensor,
): Onnxruntime.Tensor {
  return new Native(TYPES.get(datatype) as 'float32', data as Float32Array, shape);
}

export function ownTensor({ type, dims, data }: Onnxruntime.Tensor): Tensor {
  return new Tensor(DATATYPES.get(type) as Datatype, dims, data);
}

/**
 * Makes texts of BYTES; other tensors are returned unchanged. onnxruntime cuts texts at a NUL, and replaces what is not UTF-8,
 * without a word. @throws the error of `refuse` for what would be changed
 */
export function withWholeTexts(tensor: Tensor, refuse: Refuse): Tensor {
  if (tensor.datatype !== 'BYTES') return tensor;
  const texts = (tensor.data as TensorData['BYTES']).map((item, i) => {
    if (typeof item !== 'string' && !isUtf8(item))
      throw refuse(`element ${i} is not UTF-8, and onnxruntime takes only that`);
    const text = typeof item === 'string' ? item : textOf(item);
    if (text.includes('\0')) throw refuse(`element ${i} has a NUL, and onnxruntime would cut it there`);
    return text;
  });
  return new Tensor('BYTES', tensor.shape, texts);
}

function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString();
}
