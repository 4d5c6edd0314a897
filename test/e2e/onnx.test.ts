/** `banana-serve ./model.onnx`: a model without code, from its file to its answers. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { identity, writeOnnx, type OnnxModel } from '../helpers/onnx-model.js';
import { ROOT, startServer } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 60_000 };

/** `sum = a + b`, for any number of rows. */
const SUM: OnnxModel = {
  inputs: [
    { name: 'a', type: 'FP32', shape: ['batch', 2] },
    { name: 'b', type: 'FP32', shape: ['batch', 2] },
  ],
  outputs: [{ name: 'sum', type: 'FP32', shape: ['batch', 2] }],
  nodes: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['sum'] }],
};

describe('banana-serve ./m.onnx', LIMIT, () => {
  test('answers with the outputs by name, for a value for each input', async (t) => {
    const server = await startServer(writeOnnx(join(appFolder(t, {}), 'm.onnx'), SUM), { t });
    const rows = {
      a: [
        [1, 2],
        [3, 4],
      ],
      b: [
        [10, 20],
        [30, 40],
      ],
    };
    assert.deepEqual((await ask(server, rows)).json(), {
      sum: [
        [11, 22],
        [33, 44],
      ],
    });
    const row = { a: [1, 2], b: [10, 20] };
    assert.deepEqual((await ask(server, row)).json(), { sum: [11, 22] });
    const refused = await ask(server, { a: [[1, 2]], b: [[1]] });
    assert.equal(refused.status, 400);
    assert.equal(
      errorOf(refused).message,
      'Input "b": the model wants FP32 of the shape [-1, 2], but got FP32 of the shape [1, 1].',
    );
    await server.stop();
  });

  test('a model of one input takes its value alone', async (t) => {
    const server = await startServer(writeOnnx(join(appFolder(t, {}), 'm.onnx'), identity('FP32')), { t });
    assert.deepEqual(
      (
        await ask(server, [
          [1, 2],
          [3, 4],
        ])
      ).json(),
      {
        y: [
          [1, 2],
          [3, 4],
        ],
      },
    );
    assert.deepEqual((await ask(server, [1, 2])).json(), { y: [1, 2] });
    await server.stop();
  });

  test('a real model answers as onnxruntime does', async (t) => {
    const server = await startServer('examples/digits/digits.onnx', { t, cwd: ROOT });
    const image = [Array.from({ length: 8 }, () => Array<number>(8).fill(0))];
    const { probabilities } = (await ask(server, { image })).json<{ probabilities: number[] }>();
    assert.equal(probabilities.length, 10);
    assert.ok(Math.abs(probabilities.reduce((sum, one) => sum + one, 0) - 1) < 1e-5);
    await server.stop();
  });
});
