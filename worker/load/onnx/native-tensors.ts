/** Tensors of onnxruntime, from ours and back. Their data is not copied. */
import { isUtf8 } from 'node:buffer';
import { Tensor, type Datatype, type TensorData } from '../../api/tensor.js';
import type { Refuse } from '../../formats/open-inference/elements.js';
import type { Onnxruntime } from './onnxruntime.js';

/** The types of onnxruntime-node's tensors. */
export const DATATYPES: Readonly<Record<string, Datatype>> = {
  bool: 'BOOL',
  uint8: 'UINT8',
  uint16: 'UINT16',
  uint32: 'UINT32',
  uint64: 'UINT64',
  int8: 'INT8',
  int16: 'INT16',
  int32: 'INT32',
  int64: 'INT64',
  float16: 'FP16',
  float32: 'FP32',
  float64: 'FP64',
  string: 'BYTES',
};

const TYPES = Object.fromEntries(
  Object.entries(DATATYPES).map(([type, datatype]) => [datatype, type]),
) as Readonly<Record<Datatype, Onnxruntime.Tensor.Type>>;

/** BYTES must be texts (`withWholeTexts`). */
export function nativeTensor(
  { Tensor: Native }: typeof Onnxruntime,
  { datatype, shape, data }: Tensor,
): Onnxruntime.Tensor {
  return new Native(TYPES[datatype] as 'float32', data as Float32Array, shape);
}

export function ownTensor({ type, dims, data }: Onnxruntime.Tensor): Tensor {
  return new Tensor(DATATYPES[type] as Datatype, dims, data);
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
