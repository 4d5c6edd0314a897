/** Models that are managed over HTTP as Multi Model Server has it: real workers, real processes, the words to the letter. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { mmsInference } from '../../supervisor/http/dialects/mms/inference.js';
import { mmsManagement } from '../../supervisor/http/dialects/mms/management.js';
import { CUES_MODULE, editedApp } from '../helpers/edited-app.js';
import { cuesFor, fixtureStore, startManaged } from '../helpers/managed-server.js';
import { holdPort } from '../helpers/held-port.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { call, eventually, isAlive } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const NO_WORKER = '503 ServiceUnavailableException';

withOneRuntime((runtime) => {
  const { store, url } = fixtureStore(runtime);

  describe('register', LIMIT, () => {
    test('synchronous, of what cannot start: 500, and it is not there any more', async (t) => {
      const server = await startManaged(t, store);
      const failed = await server.manage(`POST /models?${url('throws-in-init')}&initial_workers=2`);
      assert.deepEqual(failed.json(), {
        code: 500,
        type: 'InternalServerException',
        message: 'Failed to start workers',
      });
      assert.equal(await server.said('GET /models/throws-in-init'), '404 Model not found: throws-in-init');
      assert.deepEqual(server.handle.models.describe(), []);
    });

    test('synchronous, the default: the workers are there with the reply', async (t) => {
      const server = await startManaged(t, store);
      assert.equal(
        await server.said(`POST /models?${url('echoes')}&initial_workers=2`),
        '200 Workers scaled',
      );
      const { workers } = await server.describe('echoes');
      assert.deepEqual(
        workers.map(({ id, status, gpu, restarts }) => [id, status, gpu, restarts]),
        [
          ['0', 'READY', false, 0],
          ['1', 'READY', false, 0],
        ],
      );
      for (const { pid = 0, memoryUsage, startTime = '' } of workers) {
        assert.ok(isAlive(pid) && memoryUsage > 1e6, `${pid} takes ${memoryUsage} bytes`);
        assert.match(startTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        assert.ok(Math.abs(Date.parse(startTime) - Date.now()) < 60_000, 'in UTC, whatever the time zone');
      }
      assert.deepEqual((await server.infer('echoes', 1)).json(), 1);
    });

    test('asynchronous, of what cannot start: it stays, failed, until it is given a new start', async (t) => {
      const cues = cuesFor(t);
      const server = await startManaged(t, store);
      await server.said(
        `POST /models?${url('throws-in-init')}&model_name=m&initial_workers=1&synchronous=false`,
      );
      const isFailed = async (): Promise<boolean> =>
        (await server.describe('m')).workers.every(({ status }) => status === 'FAILED');
      await eventually(isFailed, 60_000, () => 'it has not given up');
      const { workers } = await server.describe('m');
      assert.match(workers[0]?.lastError ?? '', /the weights are missing$/);
      assert.equal(workers[0]?.pid, undefined);
      assert.equal(
        await server.said('PUT /models/m?min_worker=1&synchronous=true'),
        '500 Failed to start workers',
      );
      cues.give('intact');
      assert.equal(await server.said('PUT /models/m?min_worker=1&synchronous=true'), '200 Workers scaled');
      assert.equal((await server.infer('m')).status, 200);
    });

    test('a start that takes too long is answered 210 and goes on; with a start-up time of 0: 500', async (t) => {
      const cues = cuesFor(t);
      cues.give('init may not end');
      const server = await startManaged(t, store);
      const slow = await server.manage(`POST /models?${url('works')}&initial_workers=1&startup_timeout=12`);
      assert.deepEqual([slow.status, slow.json()], [210, { status: 'Workers scaling in progress...' }]);
      cues.give('init may end');
      await eventually(
        async () => (await server.infer('works')).status === 200, // on a busy machine a start may take some seconds
        60_000,
        () => 'it does not go on',
      );
      const never = `POST /models?${url('works')}&model_name=never&initial_workers=1&startup_timeout=0`;
      assert.equal(await server.said(never), '500 Failed to start workers');
      assert.equal(await server.said('GET /models/never'), '404 Model not found: never');
    });
  });
});

describe('register', LIMIT, () => {
  test('without workers: the model is there, and its calls are refused at once', async (t) => {
    const server = await startManaged(t);
    const reply = await server.manage('POST /models?url=works.mjs');
    assert.equal(reply.text, '{\n  "status": "Model \\"works\\" registered"\n}\n');
    assert.deepEqual([reply.status, reply.headers.get('content-type')], [200, 'application/json']);
    assert.equal(await server.refusal('works'), NO_WORKER);
    const { workers, minWorkers, maxWorkers } = await server.describe('works');
    assert.deepEqual([workers, minWorkers, maxWorkers], [[], 0, 0]);
  });

  test('asynchronous: calls are held from the reply on, and the model is described as loading', async (t) => {
    const cues = cuesFor(t);
    cues.give('init may not end');
    const server = await startManaged(t);
    const said = await server.said('POST /models?url=works.mjs&initial_workers=1&synchronous=false');
    assert.equal(said, '202 Processing worker updates...');
    const held = server.infer('works', 1);
    const { workers, status } = await server.describe('works');
    assert.deepEqual([workers.map((worker) => worker.status), status], [['LOADING'], 'Unhealthy']);
    cues.give('init may end');
    assert.equal((await held).status, 200);
    assert.equal((await server.describe('works')).status, 'Healthy');
  });

  test('takes a JSON body in place of the query, whose numbers and booleans may be texts', async (t) => {
    const server = await startManaged(t);
    const bodies = [
      JSON.stringify({ url: 'echoes.mjs', model_name: 'one', initial_workers: 1, other: { a: [1] } }),
      '{"url": "echoes.mjs", "model_name": "two", "initial_workers": "1", "synchronous": "TRUE", "handler": null}',
    ];
    for (const body of bodies) {
      const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
      const reply = await server.manage('POST /models?model_name=not-this&url=nowhere', { body, headers });
      assert.deepEqual([reply.status, reply.json()], [200, { status: 'Workers scaled' }], body);
    }
    const { models } = (await server.manage('GET /models')).json<{ models: { modelName: string }[] }>();
    assert.deepEqual(
      models.map(({ modelName }) => modelName),
      ['one', 'two'],
    );
  });

  test('takes every option of the model, and describes it', async (t) => {
    const server = await startManaged(t);
    const options = 'batch_size=4&max_batch_delay=20&response_timeout=7&startup_timeout=30';
    await server.manage(`POST /models?url=echoes.mjs&runtime=node&handler=echoes&model_name=m&${options}`);
    const described = await server.manage('GET /models/m');
    const facts = described.json<Record<string, unknown>>();
    assert.deepEqual(
      ['batchSize', 'maxBatchDelay', 'responseTimeout', 'startupTimeout', 'loadedAtStartup', 'modelUrl'].map(
        (name) => facts[name],
      ),
      [4, 20, 7, 30, false, 'echoes.mjs'],
    );
  });

  test('with parameters that are no numbers, uses the defaults of Multi Model Server', async (t) => {
    const server = await startManaged(t);
    await server.manage('POST /models?url=echoes.mjs&batch_size=x&response_timeout=1.5&initial_workers=-3');
    const facts = (await server.manage('GET /models/echoes')).json<Record<string, unknown>>();
    assert.deepEqual([facts['batchSize'], facts['maxBatchDelay'], facts['responseTimeout']], [1, 100, 120]);
  });

  for (const [what, init] of [
    ['fails to get memory', "throw new RangeError('Array buffer allocation failed')"],
    ['fills the heap', 'const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5))'],
  ] as const)
    test(`a handler that ${what} at its start: 507 after the first start`, async (t) => {
      const cues = cuesFor(t);
      const app = `
        import { note } from ${JSON.stringify(CUES_MODULE)};
        export const init = () => { note('starts'); ${init}; };
        export const inference = () => 1;`;
      const { folder } = editedApp(t, { 'm.mjs': app });
      process.env['NODE_OPTIONS'] = '--max-old-space-size=64'; // its workers have the environment of this process
      t.after(() => delete process.env['NODE_OPTIONS']);
      const server = await startManaged(t, { modelStore: folder });
      assert.equal(
        await server.said('POST /models?url=m.mjs&initial_workers=1'),
        '507 Failed to start workers',
      );
      assert.deepEqual(cues.notes(), ['starts']);
      assert.equal((await server.manage('GET /models/m')).status, 404);
    });
});

describe('requests that are refused', LIMIT, () => {
  const ROWS: readonly (readonly [asked: string, status: number, type: string, message: string | RegExp])[] =
    [
      ['POST /models', 400, 'BadRequestException', 'Parameter url is required.'],
      ['POST /models?url=', 400, 'BadRequestException', 'Parameter url is required.'],
      ['POST /models?runtime=java', 400, 'BadRequestException', 'Parameter url is required.'],
      ['POST /models?url=../x&runtime=java', 400, 'BadRequestException', 'Invalid RuntimeType value: java'],
      [
        'POST /models?url=../x.mjs',
        404,
        'ModelNotFoundException',
        'Relative path is not allowed in url: ../x.mjs',
      ],
      ['POST /models?url=/etc/passwd', 404, 'ModelNotFoundException', /^Model not found in model store/],
      ['POST /models?url=nowhere', 404, 'ModelNotFoundException', 'Model not found in model store: nowhere'],
      ['POST /models?url=http://x/y.mar', 400, 'DownloadModelException', /not allowed \(allowed_urls\)$/],
      [
        'POST /models?url=echoes.mjs&model_name=a/b',
        400,
        'BadRequestException',
        /^A model's name must consist of/,
      ],
      [
        'POST /models?url=echoes.mjs&model_name=here',
        409,
        'ConflictStatusException',
        'Model here is already registered.',
      ],
      ['POST /models?url=echoes.mjs&batch_size=0', 400, 'BadRequestException', /^Parameter batch_size must/],
      ['POST /models?url=echoes.mjs&initial_workers=1025', 400, 'BadRequestException', /^Parameter initial/],
      [
        'PUT /models/nobody?min_worker=2&max_worker=1',
        400,
        'BadRequestException',
        'max_worker cannot be less than min_worker.',
      ],
      ['PUT /models/here?max_worker=0', 400, 'BadRequestException', /^max_worker cannot be less/],
      ['PUT /models/here?min_worker=-1', 400, 'BadRequestException', /^Parameter min_worker must be from 0/],
      ['PUT /models/nobody', 404, 'ModelNotFoundException', 'Model not found: nobody'],
      [
        'PUT /models/here/9?batch_size=2',
        404,
        'ModelVersionNotFoundException',
        'Model version: 9 does not exist for model: here',
      ],
      [
        'PUT /models/here/9/set-default',
        404,
        'ModelVersionNotFoundException',
        'Model version: 9 does not exist for model: here',
      ],
      ['GET /models/nobody', 404, 'ModelNotFoundException', 'Model not found: nobody'],
      ['GET /models/nobody/all', 404, 'ModelNotFoundException', 'Model not found: nobody'],
      ['GET /models/here/9', 404, 'ModelVersionNotFoundException', /^Model version: 9 does not exist/],
      ['DELETE /models/nobody', 404, 'ModelNotFoundException', 'Model not found: nobody'],
      ['DELETE /models/here/9', 404, 'ModelVersionNotFoundException', /^Model version: 9 does not exist/],
      ['DELETE /models', 405, 'MethodNotAllowedException', /^Requested method is not allowed/],
      ['GET /nowhere', 404, 'ResourceNotFoundException', /^Requested resource is not found/],
    ];
  for (const [asked, status, type, message] of ROWS)
    test(`${asked} is ${status} ${type}`, async (t) => {
      const server = await startManaged(t);
      await server.manage('POST /models?url=echoes.mjs&model_name=here');
      const reply = await server.manage(asked);
      const body = reply.json<{ code: number; type: string; message: string }>();
      assert.deepEqual([reply.status, body.code, body.type], [status, status, type]);
      if (typeof message === 'string') assert.equal(body.message, message);
      else assert.match(body.message, message);
      assert.equal(reply.headers.get('connection'), 'close');
      assert.equal(reply.headers.has('allow'), status === 405);
    });

  test('a body that is no object, or too large', async (t) => {
    const server = await startManaged(t);
    const headers = { 'content-type': 'application/json' };
    for (const body of [
      '',
      '[',
      '{"url":',
      "{'url': 'echoes.mjs'}",
      '{url: {a: 1}}',
      '"x"',
      '{"url": "\xff"',
    ])
      assert.equal((await server.manage('POST /models', { body, headers })).status, 400, body);
  });

  test('a body that is too large: up to twice the limit of a body of parameters the connection stays', async (t) => {
    const server = await startManaged(t);
    const head = 'HTTP/1.1\r\nHost: 127.0.0.1\r\n';
    for (const [bytes, isKept] of [
      [128 * 1024, true],
      [128 * 1024 + 1, false],
    ] as const) {
      const connection = await RawConnection.open({ url: server.managementUrl });
      connection.send(
        `POST /models ${head}Content-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`,
      );
      connection.send('x'.repeat(bytes));
      const { status, headers } = await connection.reply();
      assert.deepEqual([status, headers['connection']], [413, isKept ? 'keep-alive' : 'close']);
      if (isKept) {
        connection.send(`GET /models ${head}\r\n`);
        assert.equal((await connection.reply()).status, 200);
      }
      connection.destroy();
    }
  });

  test('a body that is not read and does not end: the answer is out, and the connection is cut', async (t) => {
    const server = await startManaged(t);
    const connection = await RawConnection.open({ url: server.managementUrl }, true);
    connection.send(
      'GET /models HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
    );
    assert.equal((await connection.reply()).status, 200);
    await connection.closed();
  });
});

test('models are listed by name, in pages that end where there are no more', LIMIT, async (t) => {
  const server = await startManaged(t);
  for (const name of ['c', 'a2', 'b', 'a1'])
    await server.manage(`POST /models?url=echoes.mjs&model_name=${name}`);
  const page = async (query: string): Promise<string> => {
    const { models, nextPageToken } = (await server.manage(`GET /models?${query}`)).json<{
      models: { modelName: string; modelUrl: string }[];
      nextPageToken?: string;
    }>();
    assert.ok(models.every(({ modelUrl }) => modelUrl === 'echoes.mjs'));
    return [...models.map(({ modelName }) => modelName), nextPageToken ?? '.'].join(' ');
  };
  for (const [query, listed] of [
    ['', 'a1 a2 b c .'],
    ['limit=2', 'a1 a2 2'],
    ['limit=2&next_page_token=2', 'b c .'],
    ['limit=3&next_page_token=-1', 'a1 a2 b 3'],
    ['limit=-1', 'a1 a2 b c .'],
    ['limit=101&next_page_token=x', 'a1 a2 b c .'],
    ['next_page_token=4', '.'],
    ['model_name_pattern=a*', 'a1 a2 .'],
    ['model_name_pattern=*2&limit=1', 'a2 .'],
  ] as const)
    assert.equal(await page(query), listed, query);
});

describe('versions', LIMIT, () => {
  test('come, are called, become the default and go over HTTP alone', async (t) => {
    const versionOf = (folder: string, modelVersion: string): Record<string, string> => ({
      [`${folder}/MAR-INF/MANIFEST.json`]: JSON.stringify({
        model: { modelName: 'm', handler: 'service.mjs:handle', modelVersion },
      }),
      [`${folder}/service.mjs`]: `export const handle = (data) => data && data.map(() => '${modelVersion}');`,
    });
    const { folder } = editedApp(t, { ...versionOf('old', '1.5'), ...versionOf('new', '2.0') });
    const server = await startManaged(t, { modelStore: folder });
    const register = (place: string): Promise<string> =>
      server.said(`POST /models?url=${place}&initial_workers=1`);
    const answered = async (...models: string[]): Promise<(string | number)[]> => {
      const answers = await Promise.all(models.map((model) => server.infer(model)));
      return answers.map(({ status, text }) => (status === 200 ? text : status));
    };
    assert.equal(await register('old'), '200 Workers scaled');
    assert.equal(await register('new'), '200 Workers scaled');
    assert.match(await register('new'), /^409 Model m is already registered/);
    assert.deepEqual(await answered('m', 'm/1.5', 'm/2.0', 'm/2'), ['1.5', '1.5', '2.0', 404]);
    assert.equal(await server.refusal('m/2'), '404 ModelVersionNotFoundException');

    assert.match(
      await server.said('PUT /models/m/2.0/set-default'),
      /^200 Default version successfully updated/,
    );
    assert.deepEqual(await answered('m', 'm/1.5'), ['2.0', '1.5']);
    assert.equal(await server.said('DELETE /models/m/1.5'), '200 Model "m" unregistered');
    assert.deepEqual(await answered('m', 'm/1.5', 'm/2.0'), ['2.0', 404, '2.0']);
    assert.equal(await register('old'), '200 Workers scaled');
    assert.deepEqual(await answered('m', 'm/1.5'), ['2.0', '1.5']);
    const { models } = (await server.manage('GET /models')).json<{ models: object[] }>();
    assert.deepEqual(models, [{ modelName: 'm', modelUrl: 'new' }], 'the default one stands for its name');
  });

  test('are described, scaled and unregistered one by one; the default one last', async (t) => {
    const server = await startManaged(t);
    const { models } = server.handle;
    await server.manage('POST /models?url=echoes.mjs&model_name=m&initial_workers=1');
    await models.register({ name: 'm', version: '2', app: 'test/fixtures/apps/echoes.mjs' });
    const all = (await server.manage('GET /models/m/all')).json<{ modelVersion: string }[]>();
    assert.deepEqual(
      all.map(({ modelVersion }) => modelVersion),
      ['1', '2'],
    );
    assert.equal((await server.describe('m')).modelVersion, '1');
    assert.equal((await server.describe('m/2/whatever')).modelVersion, '2');
    assert.equal(await server.said('PUT /models/m/2?min_worker=1&synchronous=true'), '200 Workers scaled');

    const refused = (await server.manage('DELETE /models/m')).json<{ code: number; type: string }>();
    assert.deepEqual([refused.code, refused.type], [403, 'InvalidModelVersionException']);
    const said = await server.said('PUT /models/m/2/set-default');
    assert.equal(said, '200 Default version successfully updated for model "m" to "2"');
    assert.equal((await server.describe('m')).modelVersion, '2');
    assert.equal(await server.said('DELETE /models/m/1'), '200 Model "m" unregistered');
    assert.equal(await server.said('GET /models/m/1'), '404 Model version: 1 does not exist for model: m');
    assert.equal(await server.said('DELETE /models/m'), '200 Model "m" unregistered');
    assert.equal(await server.said('GET /models/m'), '404 Model not found: m');
  });
});

test(
  'paths count as Multi Model Server counts them, and the description names each of them',
  LIMIT,
  async (t) => {
    const server = await startManaged(t);
    await server.manage('POST /models/?url=echoes.mjs');
    for (const path of ['/models/echoes/', '/models/%65choes', '/models/echoes//', '/models%2Fechoes'])
      assert.equal((await server.manage(`GET ${path}`)).status, 200, path);
    const described = await server.manage('OPTIONS /');
    const { paths } = described.json<{ paths: object }>();
    assert.deepEqual(Object.keys(paths), [...mmsManagement.paths.keys()]);
  },
);

/** On one address for both: a socket, since a port cannot be known before. */
function askSocket(path: string, asked: string, body = ''): Promise<{ status: number; text: string }> {
  const [method, url = ''] = asked.split(' ');
  const headers = { authorization: 'Bearer s3cret', 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const ask = request({ socketPath: path, method, path: url, headers, agent: false }, (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      reply.once('end', () => resolve({ status: reply.statusCode ?? 0, text }));
    });
    ask.once('error', reject).end(body);
  });
}

test('one listener for both manages and calls models, and describes both APIs', LIMIT, async (t) => {
  const { folder } = editedApp(t, { '.keep': '' });
  const path = join(folder, 'both.sock');
  await startManaged(t, { port: path, managementPort: path, managementKey: 's3cret' });
  const registered = JSON.stringify({ url: 'echoes.mjs', initial_workers: 1 });
  assert.equal((await askSocket(path, 'POST /models', registered)).status, 200);
  for (const call of ['POST /models/echoes/invoke', 'POST /models/echoes/', 'POST /predictions/echoes'])
    assert.equal((await askSocket(path, call, '7')).text, '7', call);
  assert.equal((await askSocket(path, 'GET /models/echoes')).status, 200);
  assert.match((await askSocket(path, 'GET /ping')).text, /"Healthy"/);
  const { text } = await askSocket(path, 'OPTIONS /');
  const { paths } = JSON.parse(text) as { paths: Record<string, object> };
  const both = [...mmsInference.paths.keys(), ...mmsManagement.paths.keys()];
  assert.deepEqual(new Set(Object.keys(paths)), new Set(both));
});

test(
  'every answer forbids caches and names its request; without the key the error is that of TorchServe',
  LIMIT,
  async (t) => {
    const server = await startManaged(t, { managementKey: 'to-manage' });
    const headers = { authorization: 'Bearer to-manage', 'x-request-id': 'mine' };
    for (const [asked, status, connection] of [
      ['GET /models', 200, 'keep-alive'],
      ['OPTIONS /', 200, 'keep-alive'],
      ['POST /models?url=echoes.mjs', 200, 'keep-alive'],
      ['GET /models/nobody', 404, 'close'],
      ['PATCH /models', 405, 'close'],
    ] as const) {
      const reply = await server.manage(asked, { headers });
      assert.equal(reply.status, status, asked);
      const told = ['pragma', 'cache-control', 'expires', 'x-request-id', 'connection'];
      assert.deepEqual(
        told.map((name) => reply.headers.get(name)),
        [
          'no-cache',
          'no-cache; no-store, must-revalidate, private',
          'Thu, 01 Jan 1970 00:00:00 UTC',
          'mine',
          connection,
        ],
        asked,
      );
    }
    const refused = await server.manage('GET /models', { headers: { authorization: 'Bearer to-call' } });
    assert.deepEqual(refused.json(), {
      code: 401,
      type: 'InvalidKeyException',
      message:
        'Token Authorization failed. Token either incorrect, expired, or not provided correctly. Send it as Authorization: Bearer {key}.',
    });
    assert.equal(refused.headers.get('www-authenticate'), 'Bearer');
  },
);

test('on a port that serves both, each key opens what it is for, and neither the other', LIMIT, async (t) => {
  const port = await holdPort();
  const keys = { apiKey: 'to-call', managementKey: 'to-manage' };
  const { url } = await startManaged(t, { port, managementPort: port, ...keys });
  const statusOf = async (method: string, path: string, key: string): Promise<number> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const body = method === 'POST' ? '1' : null;
    return (await call(url + path, body, headers, { method })).status;
  };
  const registered = 'POST /models?url=echoes.mjs&initial_workers=1';
  for (const [asked, key, status] of [
    [registered, '', 401],
    [registered, 'to-call', 401],
    ['GET /models', 'to-call', 401],
    ['GET /models', 'to-manage', 200],
    ['POST /predictions/echoes', 'to-manage', 401],
    ['POST /predictions/echoes', 'to-call', 404],
    ['GET /ping', '', 200],
  ] as const) {
    const [method = '', path = ''] = asked.split(' ');
    assert.equal(await statusOf(method, path, key), status, `${asked} with ${key}`);
  }
  const headers = { authorization: 'Bearer to-manage' };
  const there = await call(`${url}/models?url=echoes.mjs&initial_workers=1`, null, headers);
  assert.equal(there.status, 200, there.text);
  assert.equal(await statusOf('POST', '/predictions/echoes', 'to-call'), 200);
  assert.equal(await statusOf('POST', '/models/echoes/invoke', 'to-call'), 200);
  assert.equal(await statusOf('POST', '/models/echoes/invoke', 'to-manage'), 401);
  assert.equal(await statusOf('DELETE', '/models/echoes', 'to-call'), 401);
  assert.equal(await statusOf('DELETE', '/models/echoes', 'to-manage'), 200);
});
