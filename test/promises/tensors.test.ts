/** Every app answers in the Open Inference Protocol: the cheapest proof; test/e2e/open-inference*.test.ts has the rest. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { withEachRuntime } from '../helpers/runtimes.js';
import { shareServer } from '../helpers/shared-server.js';
import { ask, infer, int32 } from '../helpers/v2.js';

withEachRuntime(({ app }) => {
  describe('an app that is called with tensors', { timeout: 240_000 }, () => {
    const shared = shareServer(app('tensors'));
    const call = (data: number[] | Buffer) =>
      infer(shared.server, '/v2/models/tensors/infer', {
        inputs: ['INPUT0', 'INPUT1'].map((name) => ({ name, shape: [2], datatype: 'INT32', data })),
        outputs: [{ name: 'OUTPUT0', parameters: { binary_data: Buffer.isBuffer(data) } }],
      });

    test('answers in JSON to JSON, and in bytes to bytes', async () => {
      assert.deepEqual((await call([1, 2])).outputs['OUTPUT0']?.data, [2, 4]);
      assert.deepEqual((await call(int32(1, 2))).outputs['OUTPUT0']?.data, int32(2, 4));
    });

    test('an unknown model is refused in the words of Triton', async () => {
      const { status, json } = await ask(shared.server.url, '/v2/models/none');
      assert.deepEqual([status, json], [404, { error: "Request for unknown model: 'none' is not found" }]);
    });
  });
});
