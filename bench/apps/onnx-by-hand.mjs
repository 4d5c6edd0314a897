/**
 * What a person writes who has an ONNX model and serves it with an app: rows in JSON, joined for batches. `MODEL` names its
 * file. Answers as `banana-serve model.onnx` does, without its checks.
 */
import { InferenceSession, Tensor } from 'onnxruntime-node';

const ARRAYS = { float32: Float32Array, int64: BigInt64Array };

export const config = { batchSize: 8, repeatable: true };

let session;

export async function init(ctx) {
  session = await InferenceSession.create(process.env.MODEL, {
    intraOpNumThreads: ctx.worker.threads,
    interOpNumThreads: 1,
    extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
  });
}

export async function inference(input) {
  const [answer] = await inferenceBatch([input]);
  return answer;
}

/** All inputs have the same shape here. */
export async function inferenceBatch(inputs) {
  const feeds = {};
  for (const { name, type } of session.inputMetadata) {
    const rows = inputs.map((input) => input[name]);
    const shape = shapeOf(rows);
    const data = new ARRAYS[type](shape.reduce((product, size) => product * size));
    const flat = rows.flat(shape.length - 1);
    for (let i = 0; i < flat.length; i += 1) data[i] = type === 'int64' ? BigInt(flat[i]) : flat[i];
    feeds[name] = new Tensor(type, data, shape);
  }
  const outputs = await session.run(feeds);
  return inputs.map((_, i) => {
    const rows = Object.entries(outputs).map(([name, { data, dims }]) => {
      const size = data.length / inputs.length;
      return [name, nested(data.subarray(i * size, (i + 1) * size), dims.slice(1))];
    });
    return Object.fromEntries(rows);
  });
}

function shapeOf(lists) {
  const shape = [];
  for (let item = lists; Array.isArray(item); item = item[0]) shape.push(item.length);
  return shape;
}

function nested(data, [rows, ...sizes]) {
  if (sizes.length === 0) return data;
  const size = data.length / rows;
  return Array.from({ length: rows }, (_, i) => nested(data.subarray(i * size, (i + 1) * size), sizes));
}
