/** The inference API of Multi Model Server before apps of every kind: its paths, its headers, its errors. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { logLines } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';
import { call, fixture, startServer, type Answer, type Server, type Status } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const JSON_TYPE = { 'content-type': 'application/json' };

const models = (apps: Readonly<Record<string, string>>): string[] =>
  Object.entries(apps).flatMap(([name, app]) => ['--model', `${name}=${app}`]);

const withId = (id: string): typeof JSON_TYPE & Record<string, string> => ({
  ...JSON_TYPE,
  'x-request-id': id,
});

/** Status, type and message of an error. */
function said({ status, text }: Answer): string {
  const { code, type, message } = JSON.parse(text) as { code: number; type: string; message: string };
  assert.equal(code, status);
  assert.equal(text, `${JSON.stringify({ code, type, message }, null, 2)}\n`);
  return `${code} ${type}: ${message}`;
}

withOneRuntime(({ app }) => {
  describe('a server of a Banana app and several others, called as Multi Model Server', LIMIT, () => {
    const notes = mkdtempSync(join(tmpdir(), 'banana-mms-'));
    let server: Server;
    before(async () => {
      const others = models({
        kinds: app('every-kind'),
        only: app('has-no-root'),
        several: app('has-several-routes'),
        told: app('answers-as-told'),
        never: app('never-returns'),
        input: app('describes-input'),
        dies: app('dies-while-busy'),
      });
      const args = [
        ...others,
        '--run-timeout',
        '3s',
        '--max-body',
        '100kb',
        '--access-log',
        '--log-format',
        'json',
      ];
      server = await startHere(app('echoes'), { args, env: { CUES: notes } });
      await server.until(({ models }) => models.every(({ state }) => state === 'ready'));
    });
    after(async () => {
      await server.stop('SIGINT', 1);
      rmSync(notes, { recursive: true });
    });

    const send = (method: string, path: string, body: string | null = '1', headers = JSON_TYPE) =>
      call(server.url + path, body, headers, { method });

    for (const [request, answer] of [
      ['POST /predictions/echoes', '1'],
      ['POST /predictions/echoes/1', '1'],
      ['POST /predictions/echoes/1/and/more', '1'],
      ['POST /predictions/%65choes', '1'],
      ['PUT /predictions/echoes/1', '1'],
      ['PATCH /predictions/echoes', '1'],
      ['DELETE /predictions/echoes', '1'],
      ['POST /predictions/kinds', '{"got":1}'],
      ['POST /predictions/only', '{"elsewhere":true}'],
      ['POST /models/kinds/invoke', '{"got":1}'],
      ['POST /kinds/predict', '{"got":1}'],
      ['POST /invocations?model_name=kinds', '{"got":1}'],
      ['POST /invocations/?model_name=%6binds&other=1', '{"got":1}'],
    ] as const)
      test(`${request} is answered with ${answer}`, async () => {
        const [method = '', path = ''] = request.split(' ');
        const { status, text } = await send(method, path);
        assert.deepEqual([status, text], [200, answer]);
      });

    test('GET calls a model too, without a body', async () => {
      const { status, text } = await send('GET', '/predictions/echoes', null, {} as typeof JSON_TYPE);
      assert.deepEqual([status, text], [200, 'null']);
    });

    for (const [request, expected] of [
      ['POST /predictions/nobody', '404 ModelNotFoundException: Model not found: nobody'],
      ['POST /models/nobody/invoke', '404 ModelNotFoundException: Model not found: nobody'],
      ['POST /invocations?model_name=nobody', '404 ModelNotFoundException: Model not found: nobody'],
      [
        'POST /predictions/echoes/9',
        '404 ModelVersionNotFoundException: Model version: 9 does not exist for model: echoes',
      ],
      ['OPTIONS /predictions/nobody', '404 ModelNotFoundException: Model not found: nobody'],
      [
        'POST /predictions/several',
        '404 ResourceNotFoundException: The app of this model has no route /; call one of /one, /two at /models/{model_name}{route}.',
      ],
      ['POST /invocations', '400 BadRequestException: Parameter model_name is required.'],
      ['POST /invocations?model_name=', '400 BadRequestException: Parameter model_name is required.'],
      [
        'POST /api-description',
        '405 MethodNotAllowedException: Requested method is not allowed, please refer to API document.',
      ],
      ['POST /predictions/told {"status":9999}', '503 InternalServerException: Prediction failed'],
      ['POST /predictions/told {', /^400 BadRequestException: The body is not valid JSON/],
      [
        'POST /predictions/never {"obeys":true}',
        '504 InternalServerException: The call ran longer than 3000 ms (--run-timeout).',
      ],
    ] as const)
      test(`${request} is refused with ${String(expected).slice(0, 60)}`, async () => {
        const [method = '', path = '', body = '1'] = request.split(' ');
        const answer = await send(method, path, body);
        if (typeof expected === 'string') assert.equal(said(answer), expected);
        else assert.match(said(answer), expected);
        assert.equal(answer.headers.get('connection'), 'close');
      });

    test('the error line of a call has the status that Multi Model Server answers with', async () => {
      const answer = await send('POST', '/predictions/told', '{"status":9999}', withId('invalid-status'));
      await server.untilPrinted(/"level":"error".*"requestId":"invalid-status"/);
      const line = logLines(server).find(
        ({ level, requestId }) => level === 'error' && requestId === 'invalid-status',
      );
      assert.deepEqual([answer.status, line?.['status']], [503, 503]);
    });

    test('a worker that dies fails its call, and the next one is served', async () => {
      const answer = await send('POST', '/predictions/dies', '{"by":"SIGTERM"}');
      assert.equal(said(answer), '500 InternalServerException: Worker died.');
      assert.equal((await send('POST', '/predictions/dies', '{}')).status, 200);
    });

    test('HEAD is no call: 405', async () => {
      const { status, headers, text } = await send('HEAD', '/predictions/echoes', null);
      assert.deepEqual([status, text], [405, '']);
      assert.equal(headers.get('allow'), 'GET, POST, PUT, PATCH, DELETE, OPTIONS');
    });

    for (const path of ['/nobody/predict', '/models/echoes/other', '/models/a/b/c/d'])
      test(`POST ${path} is 404 here, as on our own paths`, async () => {
        const { status, text } = await send('POST', path);
        assert.equal(status, 404);
        assert.match(text, /^\{"error":\{"code":"SERVE_/);
      });

    test('every reply has the three headers against caches, errors and pages too', async () => {
      for (const [method, path] of [
        ['POST', '/predictions/echoes'],
        ['POST', '/predictions/nobody'],
        ['GET', '/ping'],
        ['OPTIONS', '/api-description'],
      ] as const) {
        const { headers } = await send(method, path, method === 'POST' ? '1' : null);
        assert.deepEqual(
          ['pragma', 'cache-control', 'expires'].map((name) => headers.get(name)),
          ['no-cache', 'no-cache; no-store, must-revalidate, private', 'Thu, 01 Jan 1970 00:00:00 UTC'],
          `${method} ${path}`,
        );
        assert.match(headers.get('x-request-id') ?? '', /^[\da-f]{32}$/);
      }
    });

    test("an app's headers about caches are replaced, its other headers stand; a client's id is kept", async () => {
      const body = { status: 200, headers: { 'cache-control': 'max-age=5', 'x-model': 'm' } };
      const { headers } = await send('POST', '/predictions/told', JSON.stringify(body), withId('mine'));
      assert.equal(headers.get('cache-control'), 'no-cache; no-store, must-revalidate, private');
      assert.deepEqual([headers.get('x-model'), headers.get('x-request-id')], ['m', 'mine']);
    });

    test("an app's own status from 400 up ends the connection with its body unchanged", async () => {
      for (const [status, connection] of [
        [201, 'keep-alive'],
        [404, 'close'],
        [507, 'close'],
      ] as const) {
        const answer = await send('POST', '/predictions/told', JSON.stringify({ status }));
        assert.deepEqual([answer.status, answer.text], [status, 'told']);
        assert.equal(answer.headers.get('connection'), connection);
      }
    });

    test('a body of twice the limit is 413 on a connection that stays, a larger one ends it', async () => {
      for (const [bytes, isKept] of [
        [204_800, true],
        [204_801, false],
      ] as const) {
        const connection = await RawConnection.open(server);
        connection.post('x'.repeat(bytes), [], '/predictions/echoes');
        const { status, headers } = await connection.reply();
        assert.deepEqual([status, headers['connection']], [413, isKept ? 'keep-alive' : 'close']);
        if (isKept) {
          connection.post('2', [], '/predictions/echoes');
          assert.equal((await connection.reply()).body, '2');
        }
        connection.destroy();
      }
    });

    test('the model gets the path and the query as they are', async () => {
      const { text } = await call(`${server.url}/predictions/input`, new Uint8Array([1, 255]), {
        'content-type': 'application/octet-stream',
      });
      assert.deepEqual(JSON.parse(text), { calls: 1, input: { kind: 'bytes', hex: '01ff' } });
    });

    test('a multipart form names its model in a field, and goes to it whole', async () => {
      const { text } = await sendForm(
        server,
        form({ data: new Blob(['x'.repeat(50_000)]), model_name: 'input' }),
      );
      const { input } = JSON.parse(text) as {
        input: { model_name: string; data: { data: { hex: string } } };
      };
      assert.equal(input.model_name, 'input');
      assert.equal(input.data.data.hex.length, 100_000);
    });

    test('a form in the URL encoding names its model too', async () => {
      const answer = await sendForm(server, new URLSearchParams({ a: 'b', model_name: 'nöbody' }));
      assert.equal(said(answer), '404 ModelNotFoundException: Model not found: nöbody');
    });

    test('a name behind the first 64 KiB of a form is not seen', async () => {
      const late = form({ data: new Blob(['x'.repeat(70_000)]), model_name: 'input' });
      assert.equal(
        said(await sendForm(server, late)),
        '400 BadRequestException: Parameter model_name is required.',
      );
      assert.equal((await sendForm(server, late, '/invocations?model_name=input')).status, 200);
    });

    test('a call is in the access log with its model', async () => {
      await send('POST', '/predictions/told', '{"status":299}', withId('logged'));
      await server.untilPrinted(/"requestId":"logged","model":"told"/);
    });

    test('OPTIONS of a model names the path by which it is called', async () => {
      for (const path of ['/predictions/kinds', '/predictions/kinds/1']) {
        const { status, text } = await send('OPTIONS', path, null);
        assert.equal(status, 200);
        assert.deepEqual(Object.keys((JSON.parse(text) as { paths: object }).paths), [path]);
      }
    });

    test('OPTIONS of the root of a server with an app names the methods alone', async () => {
      const { status, text, headers } = await send('OPTIONS', '/', null);
      assert.deepEqual([status, headers.get('allow'), text], [200, 'POST, OPTIONS', '']);
      const described = await send('GET', '/api-description/', null);
      assert.equal(described.headers.get('content-type'), 'application/json');
      assert.ok((JSON.parse(described.text) as { paths: object }).paths);
    });
  });
});

test(
  'forms that name their model at the end, in half a million chunks of one byte, are called',
  LIMIT,
  async (t) => {
    const server = await startServer(fixture('describes-input.mjs'), { t, args: ['--name', 'input'] });
    await server.until(({ state }) => state === 'ready');
    const { front } = await server.status();
    const { body, type } = await written(form({ data: new Blob(['x'.repeat(60_000)]), model_name: 'input' }));
    const chunks = Buffer.from(
      [...body].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join(''),
      'latin1',
    );
    const callOnce = async (): Promise<string> => {
      const connection = await RawConnection.open(server);
      connection.send(
        `POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      connection.send(chunks);
      connection.send('0\r\n\r\n');
      const { status, body: text } = await connection.reply();
      connection.destroy();
      const { input } = JSON.parse(text) as {
        input: { model_name: string; data: { data: { hex: string } } };
      };
      return `${status} ${input.model_name} ${input.data.data.hex.length}`;
    };
    const answers = await Promise.all(Array.from({ length: 8 }, callOnce));
    assert.deepEqual(new Set(answers), new Set(['200 input 120000']));
    const { front: after } = await server.status();
    // Each chunk that is held while the name is awaited costs 350 bytes, a block for each would be 31 GB.
    assert.ok(
      after.rssBytes < front.rssBytes + 80e6,
      `${front.rssBytes} bytes before, ${after.rssBytes} after`,
    );
    await server.stop();
  },
);

/** A form as a client sends it. */
async function sendForm(
  server: Server,
  body: FormData | URLSearchParams,
  path = '/invocations',
): Promise<Answer> {
  const { body: bytes, type } = await written(body);
  return call(server.url + path, bytes, { 'content-type': type });
}

async function written(form: FormData | URLSearchParams): Promise<{ body: Buffer; type: string }> {
  const response = new Response(form);
  const body = Buffer.from(await response.arrayBuffer());
  return { body, type: response.headers.get('content-type') ?? '' };
}

function form(fields: Readonly<Record<string, string | Blob>>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
}

describe('a server of one app that wants a key', LIMIT, () => {
  const KEY = { ...JSON_TYPE, 'x-banana-api-key': 'k' };
  const shared = shareHere(fixture('echoes.mjs'), { args: ['--api-key', 'k'] });

  test('invocations without a name are its own', async () => {
    for (const path of ['/invocations', '/invocations?other=1'])
      assert.equal((await call(shared.server.url + path, '5', KEY)).text, '5');
  });

  test('no call and no description is to be had without the key, and no model is named', async () => {
    for (const [method, path] of [
      ['POST', '/predictions/echoes'],
      ['POST', '/predictions/nobody'],
      ['OPTIONS', '/predictions/echoes'],
      ['GET', '/api-description'],
    ] as const) {
      const answer = await call(shared.server.url + path, method === 'POST' ? '1' : null, JSON_TYPE, {
        method,
      });
      assert.equal(
        said(answer),
        '401 InvalidKeyException: Token Authorization failed. Token either incorrect, expired, or not provided correctly. Send it as Authorization: Bearer {key}.',
      );
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
    }
  });

  for (const method of ['GET', 'POST', 'HEAD', 'OPTIONS'])
    test(`${method} /ping needs no key`, async () => {
      const { status, text } = await call(`${shared.server.url}/ping`, null, {}, { method });
      assert.equal(status, 200);
      assert.equal(text, method === 'HEAD' ? '' : '{\n  "status": "Healthy"\n}\n');
    });
});

test(
  'a ping is Unhealthy until a model is loaded, and Partial Healthy while another is not',
  LIMIT,
  async (t) => {
    const cues = makeCues(t);
    cues.give('import may not end');
    const args = models({ held: fixture('has-mms-routes.mjs') });
    const server = await startHere(fixture('echoes.mjs'), { t, args, env: cues.env });
    const ping = async (): Promise<string> =>
      (await call(`${server.url}/ping`, null, {}, { method: 'GET' })).text;
    await server.until(({ models }) => models[0]?.state === 'ready');
    assert.match(await ping(), /"Partial Healthy"/);
    cues.give('import may end');
    await server.until(({ models }) => models.every(({ state }) => state === 'ready'));
    assert.match(await ping(), /"Healthy"/);
    await server.stop();
  },
);

describe('an app with routes where Multi Model Server has paths', LIMIT, () => {
  const OWN = ['/invocations', '/predictions/mine', '/v1/predict'];

  test('its own routes win, before it is loaded and after', async (t) => {
    const cues = makeCues(t);
    cues.give('import may not end');
    const server = await startHere(fixture('has-mms-routes.mjs'), {
      t,
      env: cues.env,
      args: ['--workers', '2'],
      expectedRestarts: 1,
    });
    await assertUnhealthy(server, 503);
    const paths = [...OWN, '/models/has-mms-routes/invoke', '/predictions/has-mms-routes', '/predictions/no'];
    const held = Promise.all(paths.map((path) => call(server.url + path, '1')));
    await server.until(({ model }) => model.queue.arriving === paths.length);
    cues.give('import may end');
    const routes = (answers: readonly Answer[]): unknown[] =>
      answers.map(({ status, text }) =>
        status === 200 ? (JSON.parse(text) as { route: string }).route : status,
      );
    const expected = [...OWN, '/invoke', '/', 404];
    assert.deepEqual(routes(await held), expected);
    const clash =
      "/invocations, /models/has-mms-routes/invoke are routes of the app; the app answers them, and Multi Model Server's paths of the same names are not served.";
    await server.untilPrinted(clash);
    assert.deepEqual(routes(await Promise.all(paths.map((path) => call(server.url + path, '1')))), expected);
    const isWhole = ({ model: { workers } }: Status, restarts: number): boolean =>
      workers.every(({ state }) => state === 'idle') && workers[0]?.restarts === restarts;
    const { model } = await server.until((status) => isWhole(status, 0));
    process.kill(model.workers[0]?.pid ?? 0, 'SIGKILL');
    await server.until((status) => isWhole(status, 1));
    assert.equal(server.stderr().split(clash).length, 2, 'once for the model, not by each worker');
    await server.stop();
  });
});

test('a server that is Unhealthy answers 200 when started with --ping always-200', LIMIT, async (t) => {
  const cues = makeCues(t);
  cues.give('import may not end');
  const args = ['--ping', 'always-200'];
  const server = await startHere(fixture('has-mms-routes.mjs'), { t, args, env: cues.env });
  await assertUnhealthy(server, 200);
  cues.give('import may end');
  await server.stop();
});

async function assertUnhealthy(server: Pick<Server, 'url'>, status: number): Promise<void> {
  const answer = await call(`${server.url}/ping`, null, {}, { method: 'GET' });
  assert.deepEqual([answer.status, answer.text], [status, '{\n  "status": "Unhealthy"\n}\n']);
  assert.equal(answer.headers.get('connection'), status === 503 ? 'close' : 'keep-alive');
}

test(
  'a full queue is an error of its own, with the time to retry; a server that is asked to stop is Unhealthy while it ends its calls',
  LIMIT,
  async (t) => {
    const cues = makeCues(t);
    const server = await startHere(fixture('killable.mjs'), {
      t,
      args: ['--queue-size', '0'],
      env: cues.env,
    });
    await server.until(({ state }) => state === 'ready');
    const url = `${server.url}/predictions/killable`;
    const held = call(url, '{"until":"it may end"}');
    await server.until(({ model }) => model.inFlight === 1);
    const refused = await call(url, '{}');
    assert.equal(
      said(refused),
      '503 QueueFullException: No worker is available to serve request for model: killable. Consider increasing job queue size.',
    );
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
    server.process.kill('SIGTERM');
    await server.until(({ state }) => state === 'draining');
    await assertUnhealthy(server, 503);
    cues.give('it may end');
    assert.equal((await held).status, 200);
    assert.equal((await server.ended).code, 0);
  },
);
