/** A custom service of Multi Model Server, and the management API. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { managementOf } from '../helpers/managed-command.js';
import type { Management } from '../helpers/managed-server.js';
import { ROOT, call, fixture, isAlive, type Answer } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

interface Problem {
  readonly code: number;
  readonly type: string;
  readonly message: string;
}

describe('a custom service', { timeout: 240_000 }, () => {
  const store = ['--model-store', `${ROOT}test/fixtures/apps`, '--management-port', '0'];
  const args = [...store, '--model', `cats=${fixture('mms-service.mjs')}`];
  const shared = shareServer(null, { args });
  let management: Management;
  before(async () => {
    management = await managementOf(shared.server);
  });

  const send = (path: string, body: string, type = 'application/json'): Promise<Answer> =>
    call(shared.server.url + path, body, { 'content-type': type });
  const predict = (wish: string): Promise<Answer> => send('/predictions/cats', JSON.stringify({ do: wish }));

  for (const [path, type, body, item] of [
    ['/predictions/cats', 'application/json', '{"x":1}', { body: { x: 1 } }],
    ['/predictions/cats', 'text/plain', 'text', { body: 'text text' }],
    ['/predictions/cats', 'image/png', 'PNG', { body: 'bytes PNG' }],
    ['/models/cats/invoke?a=1', 'application/json', '3', { a: 'bytes 1', body: 3 }],
    ['/cats/predict', 'application/x-www-form-urlencoded', 'a=2&b=3', { a: 'bytes 2', b: 'bytes 3' }],
  ] as const)
    test(`POST ${path} of type ${type}: the item is ${JSON.stringify(item)}`, async () => {
      const answer = await send(path, body, type);
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.json<{ item: unknown }>().item, item);
    });

  for (const [wish, status, message] of [
    ['a prediction fails', 599, 'no cats today'],
    ['fails alone', 513, 'only this one'],
    ['it throws', 503, 'Prediction failed'],
    ['too few', 503, 'number of batch response mismatched'],
  ] as const)
    test(`a service of which ${wish} answers ${status} ${message}`, async () => {
      const answer = await predict(wish);
      assert.equal(answer.status, status);
      assert.deepEqual(answer.json<Problem>(), { code: status, type: 'InternalServerException', message });
    });

  test('an item sets the status, the type and the headers of its answer', async () => {
    const { status, text, headers } = await predict('status');
    assert.deepEqual([status, text], [507, 'Invalid response']);
    assert.deepEqual([headers.get('content-type'), headers.get('x-model')], ['text/csv', '5']);
  });

  test('/ping and the paths of calls answer on the main port; the management paths only on their own', async () => {
    const ping = await fetch(`${shared.server.url}/ping`);
    assert.deepEqual([ping.status, await ping.json()], [200, { status: 'Healthy' }]);
    assert.equal((await fetch(`${shared.server.url}/models`)).status, 404);
    assert.equal((await management.manage('GET /models')).status, 200);
  });

  test('a model is registered, listed, scaled up and down, described and unregistered', async () => {
    assert.equal(
      await management.said('POST /models?url=echoes.mjs&initial_workers=1'),
      '200 Workers scaled',
    );
    assert.deepEqual((await management.infer('echoes', { a: 1 })).json(), { a: 1 });
    const { models } = (await management.manage('GET /models')).json<{ models: { modelName: string }[] }>();
    assert.deepEqual(models.map(({ modelName }) => modelName).sort(), ['cats', 'echoes']);

    const scale = 'PUT /models/echoes?synchronous=true&min_worker';
    assert.equal(await management.said(`${scale}=2`), '200 Workers scaled');
    const pids = await management.pids('echoes');
    assert.equal(pids.length, 2);
    assert.ok(pids.every(isAlive));
    assert.equal(await management.said(`${scale}=1&max_worker=1`), '200 Workers scaled');
    const { status, minWorkers, workers } = await management.describe('echoes');
    assert.deepEqual([status, minWorkers, workers.map((worker) => worker.status)], ['Healthy', 1, ['READY']]);

    assert.equal(await management.said('DELETE /models/echoes'), '200 Model "echoes" unregistered');
    assert.deepEqual(pids.filter(isAlive), []);
    assert.equal((await management.infer('echoes')).status, 404);
  });

  test('a model that cannot start is not registered', async () => {
    const register = 'POST /models?url=throws-in-init.mjs&initial_workers=1';
    assert.equal(await management.said(register), '500 Failed to start workers');
    assert.equal(await management.said('GET /models/throws-in-init'), '404 Model not found: throws-in-init');
  });

  for (const [asked, said] of [
    ['POST /models', '400 Parameter url is required.'],
    ['POST /models?url=../x.mjs', '404 Relative path is not allowed in url: ../x.mjs'],
    ['POST /models?url=echoes.mjs&model_name=cats', '409 Model cats is already registered.'],
    ['PUT /models/cats?min_worker=2&max_worker=1', '400 max_worker cannot be less than min_worker.'],
    ['DELETE /models/dogs', '404 Model not found: dogs'],
  ] as const)
    test(`${asked} is ${said.slice(0, 3)}`, async () => {
      assert.equal(await management.said(asked), said);
    });
});
