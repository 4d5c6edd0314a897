/** Runs a model before any call: with the example beside it, else with zeros. */
import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describeThrown } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import type { Signature } from '../../../protocol/values/tensor.js';
import type { WarmUp } from '../../adapters/loaded-app.js';
import { readJson } from '../../formats/json.js';
import type { OnnxModel } from './onnx-model.js';
import { sampleInputs } from './sample-inputs.js';

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
