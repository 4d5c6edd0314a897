/**
 * The user's onnxruntime-node, which the runtime of the front has found, and its tensors: from ours and back, without a copy
 * of their data.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as Onnxruntime from 'onnxruntime-node';
import { AppLoadError } from '../explain-load-error.js';
import { isUtf8 } from 'node:buffer';
import { DATATYPES as ALL, Tensor, type Datatype, type TensorData } from '../../../protocol/values/tensor.js';
import type { Refuse } from '../../formats/open-inference/elements.js';
import { mapTensors, type Tensors } from './rows.js';

export type { Onnxruntime };

/**
 * Loads the package. Afterwards this process has no `Float16Array`, with which inputs of float16 fail on Node 24 and newer
 * ("not enough space"); no code of a user runs here. @throws AppLoadError
 */
export function requireOnnxruntime(path: string): typeof Onnxruntime {
  delete (globalThis as { Float16Array?: unknown }).Float16Array;
  try {
    const onnxruntime = createRequire(import.meta.url)(path) as typeof Onnxruntime;
    // Of what it prints outside of sessions, only the reason is not thrown why a provider has no library.
    onnxruntime.env.logLevel = 'error';
    return onnxruntime;
  } catch (cause) {
    const { message } = cause as Error;
    throw new AppLoadError(
      `${path}: onnxruntime-node cannot be loaded: ${message} Install it again on this machine: npm install onnxruntime-node`,
      { cause },
    );
  }
}

/** The folder of the native libraries of the package whose main file this is (`dist/index.js`). */
export function librariesOf(path: string): string {
  return join(dirname(path), `../bin/napi-v6/${process.platform}/${process.arch}`);
}

/** The types of onnxruntime-node's tensors, by datatype; it has none for BF16. */
const TYPES = new Map<Datatype, string>(
  ALL.filter((datatype) => datatype !== 'BF16').map((datatype) => [datatype, typeOf(datatype)]),
);

/** The datatypes by those types. */
export const DATATYPES = new Map([...TYPES].map(([datatype, type]) => [type, datatype] as const));

function typeOf(datatype: Datatype): string {
  return datatype === 'BYTES' ? 'string' : datatype.toLowerCase().replace('fp', 'float');
}

/** Returns the outputs of these names. BYTES among the inputs must be texts (`withWholeTexts`). */
export async function runSession(
  { Tensor: Native }: typeof Onnxruntime,
  session: Onnxruntime.InferenceSession,
  inputs: Tensors,
  names: readonly string[],
): Promise<Tensors> {
  const feeds = mapTensors(
    inputs,
    ({ datatype, shape, data }) =>
      new Native(TYPES.get(datatype) as 'float32', data as Float32Array, shape) as Onnxruntime.Tensor,
  );
  const outputs = await session.run(feeds, names);
  const own = names.map((name) => {
    const { type, dims, data } = outputs[name] as Onnxruntime.Tensor;
    return [name, new Tensor(DATATYPES.get(type) as Datatype, dims, data)] as const;
  });
  return Object.fromEntries(own);
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
