/** Texts that onnxruntime takes without a change: it cuts them at a NUL, and replaces what is not UTF-8, without a word. */
import { isUtf8 } from 'node:buffer';
import { Tensor, type TensorData } from '../../api/tensor.js';
import type { Refuse } from '../../formats/open-inference/elements.js';

/** Makes texts of BYTES; other tensors are returned unchanged. @throws the error of `refuse` for what would be changed */
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
