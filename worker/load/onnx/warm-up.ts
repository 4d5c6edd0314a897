/** Runs a model before any call: with the example beside it, else with zeros. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describeThrown } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import type { Signature, TensorSpec } from '../../api/signature.js';
import { elementCount, Tensor, type TensorData } from '../../api/tensor.js';
import type { AppLog } from '../../api/types.js';
import { readJson } from '../../formats/json.js';
import { newData } from '../../formats/open-inference/elements.js';
import { FREE } from '../../formats/open-inference/signed-inputs.js';
import type { OnnxModel } from './onnx-model.js';

/** Never rejects: a model may want inputs that only its callers know, so a failure is a warning. */
export async function warmUp(
  path: string,
  model: OnnxModel,
  signature: Signature,
  log: AppLog,
): Promise<void> {
  const file = path.replace(/\.onnx$/, '.example.json');
  const name = basename(file);
  try {
    const example = readIfThere(file);
    await model.warmUp(example === null ? zeros(signature) : readJson(example, name));
  } catch (thrown) {
    const problem = asSentence(describeThrown(thrown).message.replace(/\s+/g, ' ').trim());
    log.warn(
      `The warm-up failed, so the first calls are slower: ${problem} Put an input that works, as callers send it, into ${name} beside the model.`,
    );
  }
}

/** Null if there is no such file. */
function readIfThere(file: string): Buffer | null {
  try {
    return readFileSync(file);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw thrown;
  }
}

/** One row; other free dimensions are 1. */
export function zeros({ inputs }: Signature): Readonly<Record<string, Tensor>> {
  return Object.fromEntries(inputs.map((spec) => [spec.name, zeroOf(spec)]));
}

function zeroOf({ datatype, shape }: TensorSpec): Tensor {
  const sizes = shape.map((size) => (size === FREE ? 1 : size));
  const count = elementCount(sizes);
  const data = datatype === 'BYTES' ? Array<string>(count).fill('') : newData(datatype, count);
  return new Tensor(datatype, sizes, data as TensorData[typeof datatype]);
}
