/** Tensors and signatures for tests. */
import fc from 'fast-check';
import { elementCount, Tensor, type Datatype, type TensorSpec } from '../../../../protocol/values/tensor.js';

export function spec(datatype: Datatype, shape: readonly number[], name = 'x'): TensorSpec {
  return { name, datatype, shape };
}

const TYPED = {
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP16: Uint16Array,
  BF16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

/** Any tensor: any bits, NaN and infinities too. The texts of BYTES are `text`. */
export function anyTensor(
  text: fc.Arbitrary<Uint8Array> = fc.uint8Array({ maxLength: 5 }),
): fc.Arbitrary<Tensor> {
  const shapes = fc.array(fc.nat(3), { maxLength: 3 });
  return shapes.chain((shape) => {
    const count = elementCount(shape);
    const bytes = fc.uint8Array({ minLength: 8 * count, maxLength: 8 * count });
    const typed = Object.entries(TYPED).map(([datatype, TypedArray]) =>
      bytes.map(
        (bits) =>
          new Tensor(datatype as 'UINT8', shape, new TypedArray(bits.slice().buffer, 0, count) as Uint8Array),
      ),
    );
    const bools = bytes.map(
      (bits) =>
        new Tensor(
          'BOOL',
          shape,
          bits.slice(0, count).map((bit) => bit % 2),
        ),
    );
    const texts = fc.array(text, { minLength: count, maxLength: count }).map(
      (items) =>
        new Tensor(
          'BYTES',
          shape,
          items.map((item) => Buffer.from(item)),
        ),
    );
    return fc.oneof(...typed, bools, texts);
  });
}
