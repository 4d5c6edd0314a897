/** Several models behind one port: each has its path and its workers, and one that fails leaves the others alone. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { call, fixture, type Answer } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

describe('a server with three models', { timeout: 240_000 }, () => {
  const models = { echo: 'echoes.mjs', paths: 'named-paths.mjs', bad: 'throws-in-init.mjs' };
  const args = Object.entries(models).flatMap(([name, file]) => ['--model', `${name}=${fixture(file)}`]);
  const shared = shareServer(null, { args, expectedRestarts: 1 });

  const post = (path: string, input: unknown = {}): Promise<Answer> =>
    call(shared.server.url + path, JSON.stringify(input));
  const get = async (path: string): Promise<readonly [status: number, text: string]> => {
    const response = await fetch(shared.server.url + path);
    return [response.status, await response.text()];
  };

  test('each answers at /models/<name>/, with the routes of its own app', async () => {
    assert.deepEqual((await post('/models/echo/', { a: 1 })).json(), { a: 1 });
    assert.deepEqual((await post('/models/paths/')).json(), { route: '/' });
    assert.deepEqual((await post('/models/paths/plain')).json(), { route: '/plain' });
  });

  test('POST of a path below one of them that is no route of it is 404 and lists its routes', async () => {
    await shared.server.untilPrinted(/echo\/0 is ready/);
    const { code, message } = errorOf(await post('/models/echo/plain'));
    const listed = 'There is no POST /models/echo/plain here. Routes here: POST /models/echo/.';
    assert.deepEqual([code, message], ['SERVE_NOT_FOUND', listed]);
  });

  for (const [path, code] of [
    ['/', 'SERVE_NOT_FOUND'],
    ['/models/eco/', 'SERVE_MODEL_NOT_FOUND'],
  ] as const)
    test(`POST ${path}, where no model is, is 404 and names the models`, async () => {
      const answer = await post(path);
      assert.deepEqual([answer.status, errorOf(answer).code], [404, code]);
      assert.match(errorOf(answer).message, /echo.*paths/);
    });

  test('a model whose init throws answers 503, while the others answer and the server is ready', async () => {
    await shared.server.untilPrinted(/bad: no worker could start/);
    const refused = await post('/models/bad/');
    assert.deepEqual([refused.status, errorOf(refused).code], [503, 'SERVE_NOT_READY']);
    assert.deepEqual((await post('/models/echo/', 2)).json(), 2);
    assert.deepEqual(await get('/readyz'), [200, '{"state":"ready","notReady":{"bad":"unhealthy"}}']);
    const [status, text] = await get('/readyz/bad');
    assert.equal(status, 503);
    assert.match(text, /^\{"state":"unhealthy","model":"bad","reason":"No worker /);
    assert.deepEqual(await get('/readyz/echo'), [200, '{"state":"ready","model":"echo"}']);
  });

  test('/status lists them with their workers', async () => {
    const { models } = await shared.server.status();
    assert.deepEqual(
      models.map(({ name, version, state, workers }) => [name, version, state, workers.length]),
      [
        ['echo', '1', 'ready', 1],
        ['paths', '1', 'ready', 1],
        ['bad', '1', 'unhealthy', 1],
      ],
    );
    assert.notEqual(models[0]?.workers[0]?.pid, models[1]?.workers[0]?.pid);
  });
});
