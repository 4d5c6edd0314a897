/**
 * The promises of the core to a dialect: `PUT /x/{model}/{route*}`, forty lines that the core does not know, works with every kind
 * of app, keys, preflights and errors.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { banana } from '../../supervisor/http/dialects/banana.js';
import { MAIN_DIALECTS } from '../../supervisor/http/dialects/index.js';
import { serve } from '../../supervisor/serve.js';
import type { ServerHandle } from '../../supervisor/server/server-handle.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { eventually } from '../helpers/server.js';
import { openSocket } from '../helpers/web-socket.js';
import { tiny } from '../supervisor/http/dialects/tiny.js';

const KEY = 'k3y';
const PAGE = 'https://app.example.com';

/** The dialect stands before the others, and words what is no request at all. */
async function startWith(app: string): Promise<ServerHandle> {
  const dialects = {
    inOrder: [tiny, ...MAIN_DIALECTS.inOrder],
    default: { ...banana, fail: tiny.fail },
  };
  const given = { app, host: '127.0.0.1', port: 0, logLevel: 'silent' } as const;
  const limits = { maxBody: '2kb', runTimeout: '3s', apiKey: KEY, corsOrigin: PAGE } as const;
  const server = await serve({ ...given, ...limits }, { dialects });
  await server.ready;
  return server;
}

function put(server: ServerHandle, path: string, body: string | null = '{"a":1}', init: RequestInit = {}) {
  const headers = { 'content-type': 'application/json', 'x-banana-api-key': KEY, ...init.headers };
  return fetch(server.url + path, { method: 'PUT', body, ...init, headers });
}

withOneRuntime(({ app }) => {
  describe('a dialect that the core does not know, before a Potassium app', { timeout: 240_000 }, () => {
    let server: ServerHandle;
    before(async () => {
      server = await startWith(app('every-kind'));
    });
    after(async () => {
      await server.close();
    });

    test('a handler is called, and the answer has the headers of the dialect', async () => {
      const reply = await put(server, '/x/every-kind/', '{"a":1}', { headers: { 'x-request-id': 'mine' } });
      assert.equal(reply.status, 200);
      assert.deepEqual(await reply.json(), { got: { a: 1 } });
      const { headers } = reply;
      assert.deepEqual([headers.get('x-dialect'), headers.get('x-request-id')], ['tiny', 'mine']);
      assert.match(headers.get('server-timing') ?? '', /^queue;dur=/);
    });

    test('a stream comes as a stream', async () => {
      const reply = await put(server, '/x/every-kind/stream');
      assert.deepEqual([reply.headers.get('transfer-encoding'), await reply.text()], ['chunked', 'ab']);
    });

    test('a stream that fails breaks the connection', async () => {
      const reply = await put(server, '/x/every-kind/breaks');
      await assert.rejects(reply.text());
    });

    test('a background call is taken and kept', async () => {
      const reply = await put(server, '/x/every-kind/later');
      assert.equal(reply.headers.get('x-dialect'), 'tiny');
      const jobId = reply.headers.get('x-banana-job-id');
      const job = `/_k/jobs/${jobId}`;
      assert.deepEqual(await reply.json(), { started: true, jobId, result: job });
      const stateOf = async (): Promise<unknown> =>
        ((await (await put(server, job, null, { method: 'GET' })).json()) as { state: unknown }).state;
      await eventually(
        async () => (await stateOf()) === 'succeeded',
        60_000,
        () => 'the job has not ended',
      );
    });

    test('a WebSocket is opened, and one without a key is refused in the words of the dialect', async (t) => {
      const { socket, heard } = await openSocket(t, server, '/x/every-kind/echo', {
        'x-banana-api-key': KEY,
      });
      socket.send('hello');
      assert.deepEqual(await heard(1), ['hello']);
      const lines = [
        'GET /x/every-kind/echo HTTP/1.1',
        'Host: x',
        'Connection: Upgrade',
        'Upgrade: websocket',
      ];
      const reply = await RawConnection.ask(server, `${lines.join('\r\n')}\r\n\r\n`);
      assert.equal(reply.statusLine, 'HTTP/1.1 418 Tiny Trouble');
      assert.match(reply.body, /^SERVE_UNAUTHORIZED /);
    });

    const LONG = JSON.stringify('x'.repeat(3000));
    const ERRORS: readonly (readonly [why: string, path: string, init: RequestInit, code: string])[] = [
      ['no such model', '/x/nobody/', {}, 'SERVE_MODEL_NOT_FOUND'],
      ['no such route', '/x/every-kind/nowhere', {}, 'SERVE_NOT_FOUND'],
      ['another method', '/x/every-kind/', { method: 'POST' }, 'SERVE_METHOD_NOT_ALLOWED'],
      ['a wrong key', '/x/every-kind/', { headers: { 'x-banana-api-key': 'no' } }, 'SERVE_UNAUTHORIZED'],
      ['a plain call of a WebSocket', '/x/every-kind/echo', {}, 'SERVE_UPGRADE_REQUIRED'],
      ['a body that is too large', '/x/every-kind/', { body: LONG }, 'SERVE_BODY_TOO_LARGE'],
      ['a body that is no JSON', '/x/every-kind/', { body: '{"a":' }, 'SERVE_BAD_BODY'],
      ['a background body that is no JSON', '/x/every-kind/later', { body: '{"a":' }, 'SERVE_BAD_BODY'],
      ['a type that the route does not take', '/x/every-kind/', type('text/plain'), 'SERVE_BAD_REQUEST'],
      [
        'an unknown coding',
        '/x/every-kind/',
        { headers: { 'content-encoding': 'br' } },
        'SERVE_UNSUPPORTED_CODING',
      ],
      ['a header that cannot be sent', '/x/every-kind/bad-header', {}, 'SERVE_OUTPUT_INVALID'],
      ['a handler that throws', '/x/every-kind/throws', {}, 'SERVE_INFERENCE_FAILED'],
      ['a worker that dies', '/x/every-kind/dies', {}, 'SERVE_WORKER_LOST'],
      ['a handler that never ends', '/x/every-kind/never', {}, 'SERVE_INFERENCE_TIMEOUT'],
    ];
    for (const [why, path, init, code] of ERRORS) {
      test(`${why} is ${code}, in the words of the dialect`, async () => {
        const reply = await put(server, path, '{}', { ...init });
        assert.equal(reply.status, code === 'SERVE_INFERENCE_FAILED' ? 599 : 418);
        assert.equal(reply.statusText, 'Tiny Trouble');
        const { headers } = reply;
        assert.deepEqual([headers.get('x-code'), headers.get('x-dialect')], [code, 'tiny']);
        assert.match(await reply.text(), new RegExp(`^${code} ${headers.get('x-request-id')}: `));
        assert.equal(headers.get('allow'), code === 'SERVE_METHOD_NOT_ALLOWED' ? 'PUT' : null);
      });
    }

    test('the default dialect answers requests that are not HTTP', async () => {
      const reply = await RawConnection.ask(server, 'NONSENSE\r\n\r\n');
      assert.equal(reply.statusLine, 'HTTP/1.1 418 Tiny Trouble');
      assert.match(reply.body, new RegExp(`^SERVE_BAD_REQUEST ${reply.headers['x-request-id']}: `));
    });

    test('a preflight gets the methods of the dialect', async () => {
      const headers = { origin: PAGE, 'access-control-request-method': 'PUT', 'x-banana-api-key': 'no' };
      const reply = await put(server, '/x/every-kind/', null, { method: 'OPTIONS', headers });
      assert.equal(reply.status, 204);
      assert.equal(reply.headers.get('access-control-allow-methods'), 'GET, HEAD, POST, PUT');
    });

    test('its calls count, refused ones too; its other requests do not', async () => {
      const countOf = async (): Promise<number> => {
        const reply = await put(server, '/_k/status', null, { method: 'GET' });
        return ((await reply.json()) as { sequence_number: number }).sequence_number;
      };
      const before = await countOf();
      await put(server, '/x/every-kind/');
      await put(server, '/x/nobody/');
      await put(server, '/x/every-kind/', '{}', { method: 'POST' });
      assert.equal((await countOf()) - before, 2);
    });
  });

  test('a dialect that the core does not know, before an app in the Banana form', async () => {
    const server = await startWith(app('echoes'));
    assert.deepEqual(await (await put(server, '/x/echoes/', '[1]')).json(), [1]);
    assert.equal((await put(server, '/', '[1]', { method: 'POST' })).status, 200, 'beside the others');
    await server.close();
  });
});

function type(contentType: string): RequestInit {
  return { headers: { 'content-type': contentType } };
}
