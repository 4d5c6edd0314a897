/**
 * BERT fills the gap: `{"prompt": "Hello I am a [MASK] model."}` -> the five likeliest words.
 * Runs offline on the tiny model in this folder. For the real one, downloaded from the Hugging Face hub at the
 * first start (440 MB, then cached): FILL_MASK_MODEL=bert-base-uncased
 */
import { fileURLToPath } from 'node:url';
import { env, pipeline, type FillMaskPipeline } from '@huggingface/transformers';
import type { InitContext } from 'banana-serve';

const HUB_MODEL = process.env.FILL_MASK_MODEL;

export const example = { prompt: 'Hello I am a [MASK] model.' };

let unmask: FillMaskPipeline;

export async function init(ctx: InitContext) {
  if (HUB_MODEL === undefined) {
    env.localModelPath = fileURLToPath(new URL('models/', import.meta.url));
    env.allowRemoteModels = false;
  } else {
    env.allowLocalModels = false;
  }
  unmask = await pipeline('fill-mask', modelName(), {
    dtype: 'fp32',
    session_options: { intraOpNumThreads: ctx.worker.threads, interOpNumThreads: 1 },
  });
}

export async function inference(modelInputs: { prompt?: unknown } | null) {
  const prompt = modelInputs?.prompt;
  // As usual in Banana apps: wrong inputs get a normal answer, with status 200.
  if (typeof prompt !== 'string' || prompt === '') return { message: 'No prompt provided' };
  const { tokenizer } = unmask;
  const reach = tokenizer.model_max_length as number; // in tokens; the model reads no further
  if (!tokenizer.encode(prompt).slice(0, reach).includes(tokenizer.mask_token_id)) {
    return { message: `The prompt has no ${tokenizer.mask_token} in its first ${reach} tokens` };
  }
  return unmask(prompt);
}

/** `bert-base-uncased` itself has no ONNX file; its conversion is `Xenova/bert-base-uncased`. */
function modelName(): string {
  if (HUB_MODEL === undefined) return 'bert-tiny';
  return HUB_MODEL.includes('/') ? HUB_MODEL : `Xenova/${HUB_MODEL}`;
}
