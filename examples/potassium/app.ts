/**
 * The BERT quickstart as a Potassium app. Runs offline on the tiny model of examples/fill-mask.
 *
 *     npx banana-serve examples/potassium/app.ts
 *     curl -X POST -H "Content-Type: application/json" -d '{"prompt": "Hello I am a [MASK] model."}' http://localhost:8000
 */
import { fileURLToPath } from 'node:url';
import { env, pipeline } from '@huggingface/transformers';
import { Potassium, Response } from 'banana-serve/potassium';

const app = new Potassium('my_app').init(async () => {
  env.localModelPath = fileURLToPath(new URL('../fill-mask/models/', import.meta.url));
  env.allowRemoteModels = false;
  const model = await pipeline('fill-mask', 'bert-tiny', { dtype: 'fp32' });
  return { model };
});

app.handler('/', async (context, request) => {
  const { prompt } = request.json as { prompt?: string };
  if (prompt === undefined) return new Response({ json: { message: 'No prompt provided' } });
  const outputs = await context.model(prompt);
  return new Response({ json: { outputs } });
});

export default app;
