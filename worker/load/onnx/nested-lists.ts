/** Tensors as nested lists, for answers in JSON and MessagePack. */
import {
  elementCount,
  type Datatype,
  type Tensor,
  type TensorData,
} from '../../../protocol/values/tensor.js';
import { numberOfHalfBits } from '../../formats/open-inference/half-floats.js';

/** The elements nested as the shape is; a single element without any list if the shape is `[]`. */
export function listsOf({ datatype, data }: Tensor, shape: readonly number[]): unknown {
  return nest(elementsOf(datatype, data), shape, 0, 0);
}

/** The elements as JSON and MessagePack have them: bits and bytes would mean something else there. */
function elementsOf(datatype: Datatype, data: TensorData[Datatype]): ArrayLike<unknown> {
  switch (datatype) {
    case 'BOOL':
      return Array.from(data as TensorData['BOOL'], (bit) => bit !== 0);
    case 'UINT8':
      return Array.from(data as TensorData['UINT8']);
    case 'FP16':
      return Array.from(data as TensorData['FP16'], (bits) => numberOfHalfBits(bits, 'FP16'));
    default:
      return data;
  }
}

function nest(elements: ArrayLike<unknown>, shape: readonly number[], level: number, at: number): unknown {
  const size = shape[level];
  if (size === undefined) return elements[at];
  const step = elementCount(shape.slice(level + 1));
  if (level === shape.length - 1) return (elements as Float32Array).slice(at, at + size);
  return Array.from({ length: size }, (_, i) => nest(elements, shape, level + 1, at + i * step));
}
