/** Runs bert-tiny again and again for so many ms, on all threads of the worker. */
import { InferenceSession, Tensor } from 'onnxruntime-node';

const MODEL = new URL('../../examples/fill-mask/models/bert-tiny/onnx/model.onnx', import.meta.url);
const TOKENS = 64;

let session;

export async function init({ worker }) {
  session = await InferenceSession.create(MODEL.pathname, {
    intraOpNumThreads: worker.threads,
    interOpNumThreads: 1,
  });
}

export async function inference({ ms }) {
  const tensor = (value) => new Tensor('int64', new BigInt64Array(TOKENS).fill(value), [1, TOKENS]);
  const feeds = { input_ids: tensor(100n), attention_mask: tensor(1n), token_type_ids: tensor(0n) };
  let runs = 0;
  for (const endMs = performance.now() + ms; performance.now() < endMs; runs += 1) await session.run(feeds);
  return runs;
}
