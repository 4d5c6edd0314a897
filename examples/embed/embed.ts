/**
 * Texts as vectors: the words that bert-tiny expects in the place of each word, the strongest of each over the text (as SPLADE
 * does it). Texts about the same thing have a large product. `search.ts` calls it as a function.
 */
import { fileURLToPath } from 'node:url';
import { AutoModelForMaskedLM, AutoTokenizer, env } from '@huggingface/transformers';
import type { InitContext } from 'banana-serve';

let tokenizer: Awaited<ReturnType<typeof AutoTokenizer.from_pretrained>>;
let model: Awaited<ReturnType<typeof AutoModelForMaskedLM.from_pretrained>>;

export async function init(ctx: InitContext) {
  env.localModelPath = fileURLToPath(new URL('../fill-mask/models/', import.meta.url));
  env.allowRemoteModels = false;
  tokenizer = await AutoTokenizer.from_pretrained('bert-tiny');
  const session_options = { intraOpNumThreads: ctx.worker.threads, interOpNumThreads: 1 };
  model = await AutoModelForMaskedLM.from_pretrained('bert-tiny', { dtype: 'fp32', session_options });
}

export async function inference({ text }: { text: string }): Promise<Float32Array> {
  const { logits } = (await model(tokenizer(text))) as { logits: { data: Float32Array; dims: number[] } };
  const [, tokens = 0, words = 0] = logits.dims;
  const vector = new Float32Array(words);
  for (let token = 1; token < tokens - 1; token += 1)
    // between the marks of begin and end
    for (let word = 0; word < words; word += 1) {
      const strength = Math.log1p(Math.max(0, logits.data[token * words + word] ?? 0));
      vector[word] = Math.max(vector[word] ?? 0, strength);
    }
  return scaled(vector);
}

/** Scales it to the length 1. */
function scaled(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return vector.map((strength) => strength / length);
}
