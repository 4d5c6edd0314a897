/** Several models behind one port: the paths of each, and the errors of paths without a model. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withOneRuntime } from '../helpers/runtimes.js';
import { shareHere } from '../helpers/shared-server.js';
import { startHere } from '../helpers/here.js';
import { call, type Server } from '../helpers/server.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };

async function codeOf(url: string, init: RequestInit = { method: 'POST', body: '{}' }): Promise<string> {
  const response = await fetch(url, init);
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  return `${response.status} ${error.code}: ${error.message}`;
}

withOneRuntime(({ app }) => {
  const NAMED = ['--model', `echo=${app('echoes')}`, '--model', `kinds=${app('every-kind')}`];

  describe('a server of a default model and two more', LIMIT, () => {
    let server: Server;
    before(async () => {
      const args = [...NAMED, '--name', 'main', '--access-log', '--log-format', 'json'];
      server = await startHere(app('has-model-routes'), { args });
      for (const name of ['main', 'echo', 'kinds'])
        await server.untilPrinted(new RegExp(`"model":"${name}".*ready|ready.*"model":"${name}"`));
    });
    after(() => server.stop());

    for (const [path, body, answer] of [
      ['/', '1', '{"main":1}'],
      ['/models/main/', '2', '{"main":2}'],
      ['/models/echo/', '"é"', '"é"'],
      ['/models/%65cho/?x=1', '3', '3'],
      ['/models/kinds/', '4', '{"got":4}'],
      ['/models/kinds/stream', '5', 'ab'],
      ['/models/echo/predict', '6', '{"own":6}'],
    ] as const) {
      test(`POST ${path} is answered with ${answer}`, async () => {
        assert.equal((await call(server.url + path, body)).text, answer);
      });
    }

    test('a WebSocket is opened at its model, and only at the one that has it', async (t) => {
      const { socket, heard } = await openSocket(t, server, '/models/kinds/echo');
      socket.send('hello');
      assert.deepEqual(await heard(1), ['hello']);
      await assert.rejects(openSocket(t, server, '/models/main/echo'), { status: 404 });
      await assert.rejects(openSocket(t, server, '/models/nobody/echo'), { status: 404 });
    });

    for (const [request, said] of [
      ['POST /models/nobody/', /^404 SERVE_MODEL_NOT_FOUND: .*main, echo, kinds/],
      [
        'POST /models/kinds/nowhere',
        /^404 SERVE_NOT_FOUND: There is no POST \/models\/kinds\/nowhere here\. Routes here: POST \/models\/kinds\/, .*WebSocket \/models\/kinds\/echo/,
      ],
      ['POST /models/kinds', /^404 SERVE_NOT_FOUND/],
      ['POST /models/', /^404 SERVE_NOT_FOUND/],
      [
        'GET /models/echo/',
        /^405 SERVE_METHOD_NOT_ALLOWED: \/models\/echo\/ takes POST, OPTIONS, not GET\.$/,
      ],
      ['GET /models/kinds/echo', /^426 SERVE_UPGRADE_REQUIRED/],
      ['POST /stream', /^404 SERVE_NOT_FOUND/],
    ] as const) {
      test(`${request} is ${said.source.slice(1, 30)}`, async () => {
        const [method = '', path = ''] = request.split(' ');
        const init = method === 'POST' ? { method, body: '{}' } : { method };
        assert.match(await codeOf(server.url + path, init), said);
      });
    }

    test('the gateway calls the model that modelKey names', async () => {
      const start = async (body: object): Promise<unknown> =>
        (await call(`${server.url}/start/v4/`, JSON.stringify(body))).json<{ modelOutputs?: unknown[] }>()
          .modelOutputs?.[0];
      assert.deepEqual(await start({ modelKey: 'echo', modelInputs: 7 }), 7);
      assert.deepEqual(await start({ modelKey: 'kinds', modelInputs: 8 }), { got: 8 });
      assert.deepEqual(await start({ modelInputs: 9 }), { main: 9 });
    });

    test('every line of the access log names its model, refusals too', async () => {
      await call(`${server.url}/models/echo/`, '1', { 'x-request-id': 'line-1' });
      await server.untilPrinted(/"requestId":"line-1","model":"echo"/);
      await call(`${server.url}/models/kinds/`, '{', { 'x-request-id': 'line-2' });
      await server.untilPrinted(
        /"requestId":"line-2","model":"kinds","status":400,"code":"SERVE_BAD_REQUEST"/,
      );
    });
  });

  describe('a server that was given no app', LIMIT, () => {
    const NAMES = /echo|kinds/;
    const headers = { 'x-banana-api-key': 'k' };
    const shared = shareHere(null, { args: [...NAMED, '--api-key', 'k'] });

    test('answers for its named models only', async () => {
      assert.equal((await call(`${shared.server.url}/models/echo/`, '1', headers)).text, '1');
      for (const path of ['/', '/anything'])
        assert.match(
          await codeOf(shared.server.url + path, { method: 'POST', body: '{}', headers }),
          /^404 SERVE_NOT_FOUND: There is no POST .* here\. The models of this server answer at \/models\/echo\/, \/models\/kinds\/\.$/,
        );
      const status = await codeOf(`${shared.server.url}/_k/status`, { headers });
      assert.match(status, /^404 SERVE_MODEL_NOT_FOUND: .*echo, kinds/);
      const { text } = await call(`${shared.server.url}/start/v4/`, '{"modelInputs":1}', headers);
      assert.match(
        text,
        /inference server error: The request names no model, and no model answers.*echo, kinds/,
      );
    });

    test('names none of them to a client without a key', async () => {
      assert.equal(
        await codeOf(`${shared.server.url}/readyz/nobody`, {}),
        '404 SERVE_MODEL_NOT_FOUND: No such model.',
      );
      for (const path of ['/', '/models/nobody/', '/_k/status'])
        assert.match(await codeOf(shared.server.url + path), /^401 SERVE_UNAUTHORIZED/);
      for (const body of ['{}', '{"modelKey":"nobody"}'])
        assert.doesNotMatch((await call(`${shared.server.url}/start/v4/`, body)).text, NAMES);
    });
  });
});
