/** Values of programs that call a model without code as a function: MessagePack, in which tensors stay tensors. */
import { MSGPACK_VALUES, tensorOfArray } from '../../protocol/values/msgpack-values.js';
import { isObject, Tensor, type Signature, type TensorSpec } from '../../protocol/values/tensor.js';
import type { DialectFormat } from './body-format.js';
import { refuseInput } from './open-inference/elements.js';
import { rawTensor } from './open-inference/signed-inputs.js';
import { programExchange, programFormat } from './program-exchange.js';

const EXCHANGE = programExchange(MSGPACK_VALUES);

export const FORMAT: DialectFormat = programFormat((_call, { signature }) => {
  if (signature === undefined) return EXCHANGE;
  return { ...EXCHANGE, read: (body) => asTensors(EXCHANGE.read(body), signature) };
});

/** Makes tensors of typed arrays, by name or alone, so that the outputs are tensors as well. */
function asTensors(input: unknown, { inputs }: Signature): unknown {
  const [only] = inputs;
  if (ArrayBuffer.isView(input) || input instanceof Tensor || !isObject(input))
    return only === undefined ? input : asTensor(input, only);
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      const spec = inputs.find((one) => one.name === name);
      return [name, spec === undefined ? value : asTensor(value, spec)];
    }),
  );
}

/** Bytes have the shape that the model says. @throws SERVE_BAD_BODY */
function asTensor(value: unknown, spec: TensorSpec): unknown {
  if (!(value instanceof Uint8Array)) return tensorOfArray(value) ?? value;
  return rawTensor(spec, Buffer.from(value), false, refuseInput(spec.name));
}
