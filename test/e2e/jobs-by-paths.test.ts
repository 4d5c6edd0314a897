/** A job may be a call at any path: its result is what the call would have got there. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callAsync } from '../helpers/jobs.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { call } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const JSON_TYPE = { 'content-type': 'application/json' };

const ECHOED = '{"a":[1,"é"]}';
const TENSORS = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,2],"data":[0.5,1.5]}]}';

const ROWS: readonly (readonly [path: string, body: string])[] = [
  ['/models/echoes/', ECHOED],
  ['/models/echoes/invoke', ECHOED],
  ['/predictions/echoes', ECHOED],
  ['/predictions/echoes/1', ECHOED],
  ['/invocations?model_name=echoes', ECHOED],
  ['/v2/models/tensors/infer', TENSORS],
  ['/v2/models/tensors/versions/1/infer', TENSORS],
];

withEachRuntime(({ app }) => {
  describe('two models', LIMIT, () => {
    const args = ['--model', `echoes=${app('echoes')}`, '--model', `tensors=${app('tensors')}`];
    const shared = shareHere(null, { args });

    for (const [path, body] of ROWS) {
      test(`a call of ${path} may be a job`, async () => {
        const { server } = shared;
        const plain = await call(server.url + path, body, JSON_TYPE);
        assert.equal(plain.status, 200, plain.text);
        const answer = await callAsync(server, path, body);
        assert.deepEqual([answer.status, answer.headers.get('preference-applied')], [202, 'respond-async']);
        const result = await fetch(`${server.url}${answer.headers.get('location')}/result?wait=50s`);
        assert.deepEqual(
          [result.status, result.headers.get('content-type'), await result.text()],
          [plain.status, plain.headers.get('content-type'), plain.text],
        );
      });
    }

    test('a gateway start is a job anyway, and is answered in its own form', async () => {
      const { server } = shared;
      const body = `{"modelKey":"echoes","modelInputs":${ECHOED}}`;
      const answer = await callAsync(server, '/start/v4/', body);
      const { callID = '', modelOutputs } = JSON.parse(answer.text) as {
        callID?: string;
        modelOutputs?: unknown;
      };
      assert.deepEqual([answer.status, modelOutputs], [200, [JSON.parse(ECHOED)]]);
      const result = await fetch(`${server.url}/_k/jobs/${callID.replace('call_', '')}/result`);
      assert.deepEqual([result.status, await result.json()], [200, JSON.parse(ECHOED)]);
    });
  });
});
