/** The paths of the Open Inference Protocol: pages, methods, keys, listeners, and what nothing claims below /v2. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RawConnection } from '../helpers/raw-http.js';
import { makeCues } from '../helpers/cues.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { ask, encoded, int32, way, type Asked, type V2Answer } from '../helpers/v2.js';

const LIMIT = { timeout: 240_000 };
const KEY = { Authorization: 'Bearer k3y' };
const MANAGEMENT_KEY = { Authorization: 'Bearer m4nage' };

const SUM = encoded({
  inputs: ['INPUT0', 'INPUT1'].map((name) => ({ name, shape: [1], datatype: 'INT32', data: int32(3) })),
});

withOneRuntime(({ app }) => {
  describe('below /v2', LIMIT, () => {
    const args = [
      ...['--name', 'm', '--model', `signed=${app('signed-tensors')}`, '--api-key', 'k3y', '--expose-errors'],
      ...[
        '--management-port',
        '0',
        '--management-key',
        'm4nage',
        '--metrics-port',
        '0',
        '--cors-origin',
        '*',
      ],
    ];
    const shared = shareHere(app('tensors'), { args });
    const get = (path: string, asked: Asked = {}): Promise<V2Answer> =>
      ask(shared.server.url, path, { ...asked, headers: { ...KEY, ...asked.headers } });
    const listener = (name: 'management API is' | 'metrics are'): string => {
      const found = new RegExp(`${name} on (http://[^\\s"]+)`).exec(shared.server.stderr());
      return found?.[1]?.replace(/\/metrics$/, '') ?? assert.fail(shared.server.stderr());
    };

    const ROWS = { name: 'rows', datatype: 'FP32', shape: [-1, 2] };
    const SIGNED = {
      name: 'signed',
      versions: ['1'],
      platform: 'node',
      inputs: [ROWS],
      outputs: [
        { name: 'sums', datatype: 'FP32', shape: [-1] },
        { name: 'count', datatype: 'INT64', shape: [1] },
      ],
    };
    const PAGES: Readonly<Record<string, object>> = {
      '/v2/health/live': { live: true },
      '/v2/health/ready': { ready: true, live: true },
      '/v2/models': { models: ['m', 'signed'] },
      '/v2/models/m': { name: 'm', versions: ['1'], platform: 'node', inputs: [], outputs: [] },
      '/v2/models/signed': SIGNED,
      '/v2/models/signed/versions/1': SIGNED,
      '/v2/models/signed?test_1=1&test_2=2': SIGNED,
      '/v2/models/signed/ready': { name: 'signed', ready: true },
      '/v2/models/signed/versions/1/ready': { name: 'signed', ready: true },
    };
    for (const [path, body] of Object.entries(PAGES))
      test(`GET ${path}, and HEAD without the body`, async () => {
        const page = await get(path);
        assert.deepEqual([page.status, page.json], [200, body]);
        const head = await get(path, { method: 'HEAD' });
        assert.deepEqual([head.status, head.body.length], [200, 0]);
        assert.equal(head.headers['content-length'], page.headers['content-length']);
      });

    test('GET /v2 names the server and its extensions; with the management API, the repository too', async () => {
      const own = ['binary_tensor_data', 'model_configuration', 'parameters', 'statistics'];
      const { json } = await get('/v2');
      assert.deepEqual([json['name'], json['extensions']], ['banana-serve', own]);
      assert.match(String(json['version']), /^\d+\.\d+\.\d+/);
      const managed = await ask(listener('management API is'), '/v2', { headers: MANAGEMENT_KEY });
      assert.deepEqual(managed.json['extensions'], [...own, 'model_repository']);
    });

    test('the configuration has the tensors, all dimensions and no batch', async () => {
      const { json } = await get('/v2/models/signed/config');
      const { name, platform, max_batch_size: size, input, output } = json;
      assert.deepEqual([name, platform, size], ['signed', 'node', 0]);
      assert.deepEqual(input, [
        { name: 'rows', data_type: 'TYPE_FP32', dims: [-1, 2], format: 'FORMAT_NONE' },
      ]);
      assert.deepEqual(output, [
        { name: 'sums', data_type: 'TYPE_FP32', dims: [-1] },
        { name: 'count', data_type: 'TYPE_INT64', dims: [1] },
      ]);
    });

    test('statistics are there of one version, one model and all', async () => {
      for (const [path, names] of [
        ['/v2/models/signed/versions/1/stats', ['signed']],
        ['/v2/models/signed/stats', ['signed']],
        ['/v2/models/stats', ['m', 'signed']],
      ] as const) {
        const { json } = await get(path);
        assert.deepEqual(
          (json['model_stats'] as { name: string }[]).map(({ name }) => name),
          names,
        );
      }
    });

    for (const path of ['/v2/health/live', '/v2/health/ready', '/v2/models/m/ready'])
      test(`${path} needs no key, on no listener`, async () => {
        for (const url of [shared.server.url, listener('management API is')])
          assert.equal((await ask(url, path)).status, 200);
      });

    test('a client without a key learns of no path or model, and calls none', async () => {
      const pages = [
        '/v2',
        '/v2/models',
        '/v2/models/m',
        '/v2/models/m/config',
        '/v2/models/m/stats',
        '/v2/none',
      ];
      const calls = ['/v2/models/m/infer', '/v2/models/none/infer', '/v2/repository/index'];
      for (const [method, paths] of [
        ['GET', pages],
        ['POST', calls],
      ] as const)
        for (const path of paths) {
          const { status, error, headers } = await ask(shared.server.url, path, { method });
          assert.deepEqual([status, headers['www-authenticate']], [401, 'Bearer'], path);
          assert.match(String(error), /needs a valid API key/);
        }
    });

    test('a call needs the key of a call, on the listener of the management API its own', async () => {
      const asked = { method: 'POST', ...SUM };
      const path = '/v2/models/m/infer';
      const statusOf = async (url: string, key: Record<string, string>): Promise<number> =>
        (await ask(url, path, { ...asked, headers: { ...SUM.headers, ...key } })).status;
      assert.deepEqual(
        [await statusOf(shared.server.url, {}), await statusOf(shared.server.url, KEY)],
        [401, 200],
      );
      const managed = listener('management API is');
      assert.deepEqual([await statusOf(managed, KEY), await statusOf(managed, MANAGEMENT_KEY)], [401, 200]);
      assert.deepEqual((await ask(managed, '/v2/models/signed', { headers: MANAGEMENT_KEY })).json, SIGNED);
    });

    for (const [path, method, allow] of [
      ['/v2', 'POST', 'GET, HEAD'],
      ['/v2/health/ready', 'DELETE', 'GET, HEAD'],
      ['/v2/models/m', 'PUT', 'GET, HEAD'],
      ['/v2/models/m/infer', 'GET', 'POST'],
      ['/v2/models/m/infer', 'OPTIONS', 'POST'],
    ] as const)
      test(`${method} ${path}: 405 with Allow`, async () => {
        const { status, headers, error } = await get(path, { method });
        assert.deepEqual([status, headers.allow], [405, allow]);
        assert.equal(error, `${path} takes ${allow}, not ${method}.`);
      });

    for (const [path, text] of [
      ['/v2/models/none', "Request for unknown model: 'none' is not found"],
      ['/v2/models/none/ready', "Request for unknown model: 'none' is not found"],
      ['/v2/models/none/stats', "Request for unknown model: 'none' is not found"],
      ['/v2/models/m/versions/9', "Request for unknown model: 'm' version 9 is not found"],
      ['/v2/models/m/versions/9/ready', "Request for unknown model: 'm' version 9 is not found"],
      ['/v2/', 'There is no GET /v2/ here.'],
      ['/v2/models/m/generate', 'There is no GET /v2/models/m/generate here.'],
      ['/v2/repository/index', 'There is no GET /v2/repository/index here.'],
      [
        '/v2/models/m/trace/setting',
        'There is no GET /v2/models/m/trace/setting here: this server has no trace settings.',
      ],
      [
        '/v2/logging',
        'There is no GET /v2/logging here: this server has no log settings to change; its options are --log-level and --log-format.',
      ],
      [
        '/v2/systemsharedmemory/status',
        'There is no GET /v2/systemsharedmemory/status here: this server has no shared memory; send tensors as bytes.',
      ],
    ] as const)
      test(`${path}: 404, ${text.slice(0, 24)}`, async () => {
        const { status, json, headers } = await get(path);
        assert.deepEqual([status, json, headers['content-type']], [404, { error: text }, 'application/json']);
        assert.equal(headers['access-control-allow-origin'], '*');
      });

    test('a call of an unknown model is refused in the words that clients look for', async () => {
      const { status, error } = await get('/v2/models/none/infer', { method: 'POST', body: '{}' });
      assert.deepEqual([status, error], [404, "Request for unknown model: 'none' is not found"]);
    });

    test('a path that cannot be decoded, and a wrong Host, are errors in the shape of the protocol', async () => {
      const broken = await get('/v2/%ff');
      assert.deepEqual([broken.status, Object.keys(broken.json)], [400, ['error']]);
      const reply = await RawConnection.ask(
        shared.server,
        'GET /v2/health/live HTTP/1.1\r\nHost: a b\r\n\r\n',
      );
      assert.match(reply.statusLine, /400/);
      assert.deepEqual(Object.keys(JSON.parse(reply.body) as object), ['error']);
    });

    test('the listener of metrics has errors in the shape of the protocol, and nothing else', async () => {
      for (const path of ['/v2', '/v2/health/live', '/v2/models/m'])
        assert.deepEqual(await statusAndKeys(ask(listener('metrics are'), path)), [404, ['error']], path);
    });

    test('so has the listener of the management API', async () => {
      const url = listener('management API is');
      assert.deepEqual(await statusAndKeys(ask(url, '/v2/none', { headers: MANAGEMENT_KEY })), [
        404,
        ['error'],
      ]);
      assert.deepEqual(await statusAndKeys(ask(url, '/v2/none')), [401, ['error']]);
    });

    test('--expose-errors shows the stack in the text of the error', async () => {
      const { body } = encoded({ inputs: [way('throws')] });
      const { status, json } = await get('/v2/models/m/infer', { method: 'POST', body });
      assert.deepEqual([status, Object.keys(json)], [500, ['error']]);
      assert.match(String(json['error']), /^The model failed on this call\.\nError: a secret\n +at /);
    });

    test('pages of other origins may read the length of the JSON', async () => {
      const { headers } = await get('/v2/health/live', { headers: { Origin: 'https://app.example' } });
      assert.match(String(headers['access-control-expose-headers']), /, Inference-Header-Content-Length$/);
      const preflight = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'POST' };
      assert.equal((await get('/v2/models/m/infer', { method: 'OPTIONS', headers: preflight })).status, 204);
    });

    test('a WebSocket is not there: a plain answer, or a refusal in the shape of the protocol', async () => {
      const upgrade = (path: string, more = ''): string =>
        `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k3y\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${more}\r\n`;
      const page = await RawConnection.ask(shared.server, upgrade('/v2/health/live'));
      assert.match(page.statusLine, / 200 /);
      const none = await RawConnection.ask(shared.server, upgrade('/v2/chat'));
      assert.match(none.statusLine, / 404 /);
      assert.deepEqual(JSON.parse(none.body), { error: 'There is no GET /v2/chat here.' });
    });
  });

  test(
    'routes of an app go before the protocol, also for calls that came before it was loaded',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('import may not end');
      const server = await startHere(app('has-v2-routes'), { t, env: cues.env });
      const post = async (path: string): Promise<[number, unknown]> => {
        const { status, json } = await call(server.url + path, '{"a":1}');
        return [status, json()];
      };
      const OWN = '/v2/models/has-v2-routes/infer';
      const early = Promise.all([
        post(OWN),
        post('/v2/mine'),
        post('/v2/other'),
        post('/v2/models/has-v2-routes'),
      ]);
      const metadata = ask(server.url, '/v2/models/has-v2-routes');
      const ready = await ask(server.url, '/v2/health/ready');
      assert.deepEqual(
        [ready.status, ready.json],
        [400, { ready: false, live: true, error: 'The server is starting.' }],
      );
      const model = await ask(server.url, '/v2/models/has-v2-routes/ready');
      assert.deepEqual(
        [model.status, model.json],
        [400, { name: 'has-v2-routes', ready: false, error: 'The model has-v2-routes is starting.' }],
      );
      const hurried = await ask(server.url, '/v2/models/has-v2-routes', {
        headers: { 'X-Request-Timeout-Seconds': '0.01' },
      });
      assert.deepEqual([hurried.status, hurried.error], [504, "The client's deadline passed."]);
      cues.give('import may end');

      const expected = [
        [200, { route: OWN, got: { a: 1 } }],
        [200, { route: '/v2/mine', got: { a: 1 } }],
        [404, { error: 'There is no POST /v2/other here.' }],
        [405, { error: '/v2/models/has-v2-routes takes GET, HEAD, not POST.' }],
      ];
      assert.deepEqual(await early, expected);
      assert.equal((await metadata).json['platform'], 'node');
      assert.deepEqual(
        await Promise.all([post(OWN), post('/v2/mine'), post('/v2/other')]),
        expected.slice(0, 3),
      );
      await server.stop();
    },
  );
});

async function statusAndKeys(coming: Promise<V2Answer>): Promise<[number, string[]]> {
  const { status, json } = await coming;
  return [status, Object.keys(json)];
}
