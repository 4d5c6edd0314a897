/** Runs a model before any call: with the example beside it, else with zeros. `optimize` makes its inputs here, too. */
import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describeThrown } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import {
  elementCount,
  newData,
  Tensor,
  type Signature,
  type TensorData,
  type TensorSpec,
} from '../../../protocol/values/tensor.js';
import type { WarmUp } from '../../adapters/loaded-app.js';
import { readJson } from '../../formats/json.js';
import type { OnnxModel } from './onnx-model.js';
import { fill, type Filling } from '../../formats/open-inference/elements.js';
import { FREE } from '../../formats/open-inference/signed-inputs.js';
import type { Tensors } from './rows.js';

/** Runs what stands beside the model when it is called; a failure of that is a warning, of zeros just a remark. */
export function warmUpOf(path: string, model: OnnxModel, signature: Signature): WarmUp {
  const file = path.replace(/\.onnx$/, '.example.json');
  const name = basename(file);
  const isThere = existsSync(file);
  return {
    advice: isThere
      ? `It runs the model with ${name}: a shorter input is enough.`
      : `It runs the model with zeros: put an input that works, as callers send it, into ${name} beside the model.`,
    async run({ log, worker }) {
      try {
        await model.warmUp(isThere ? readJson(readFileSync(file), name) : sampleInputs(signature, 1, true));
      } catch (thrown) {
        if (isThere) log.warn(failureOf(name, thrown));
        else if (worker.index === 0)
          log.info(
            `the model does not run with zeros, so the first calls are slower: ${name} beside it may have an input that works`,
          );
      }
    },
  };
}

function failureOf(name: string, thrown: unknown): string {
  const problem = asSentence(describeThrown(thrown).message.replace(/\s+/g, ' ').trim());
  return `The warm-up with ${name} failed, so the first calls are slower: ${problem}`;
}

/**
 * Inputs of so many rows, of which no two neighbours are alike: floats from -1 to 1, and 0 or 1 for all others, which are
 * likely to be valid where a number is an index; texts are empty. `isZero`: only zeros. Free dimensions beside the rows
 * are 1.
 */
export function sampleInputs({ inputs }: Signature, rows: number, isZero: boolean): Tensors {
  return Object.fromEntries(inputs.map((spec) => [spec.name, sampleOf(spec, rows, isZero)]));
}

function sampleOf({ datatype, shape = [] }: TensorSpec, rows: number, isZero: boolean): Tensor {
  const sizes = shape.map((size, i) => (size !== FREE ? size : i === 0 ? rows : 1));
  const count = elementCount(sizes);
  if (datatype === 'BYTES') return new Tensor(datatype, sizes, Array<string>(count).fill(''));
  const data = newData(datatype, count);
  const values = Array.from({ length: isZero ? 0 : count }, (_, i) => valueOf(datatype, i));
  fill(datatype, data as Filling, 0, values, (text) => new Error(text));
  return new Tensor(datatype, sizes, data as TensorData[typeof datatype]);
}

function valueOf(datatype: TensorSpec['datatype'], i: number): unknown {
  if (datatype === 'BOOL') return i % 2 === 1;
  if (/^(?:FP|BF)/.test(datatype)) return ((i * 7919) % 2003) / 1001 - (i === 0 ? 0 : 1);
  return i % 2;
}
