/** A server of a model store without an app: on its main port everything speaks as Multi Model Server. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { editedApp } from '../helpers/edited-app.js';
import { RawConnection } from '../helpers/raw-http.js';
import { startHere } from '../helpers/here.js';
import { call, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const SERVICE = `export const handle = (data) => data && data.map(({ body }) => ({ says: body }));`;

/** An app of each form, and a service that prints, and dies if its input asks for it. */
const FORMS = {
  service: SERVICE,
  banana: 'export const inference = (input) => ({ banana: input });',
  potassium: `
  import { Potassium, Response } from 'banana-serve/potassium';
  export const app = new Potassium('p').init(() => ({}));
  app.handler('/', (_context, { json }) => new Response({ json: { potassium: json } }));`,
  mortal: `
  export function handle(data) {
    if (data === null) return null;
    if (data[0].body === 'die') process.exit(3);
    console.log('a line of its own');
    return data.map(() => 1);
  }`,
};

/** A server of a store with these files. */
async function serveStore(t: TestContext, files: Readonly<Record<string, string>>): Promise<Server> {
  const stored = Object.entries(files).map(([path, text]) => [`store/${path}`, text] as const);
  const { folder } = editedApp(t, { 'store/.keep': '', ...Object.fromEntries(stored) });
  const args = ['--model-store', 'store', '--management-port', '0', '--drain-lag', '0s', '--models', 'all'];
  return startHere(null, { args, cwd: folder, t });
}

const NO_CACHE = {
  pragma: 'no-cache',
  'cache-control': 'no-cache; no-store, must-revalidate, private',
  expires: 'Thu, 01 Jan 1970 00:00:00 UTC',
};

test('a service and an app in other forms are called by the same paths', LIMIT, async (t) => {
  const files = {
    'cats.mjs': FORMS.service,
    'dogs.mjs': FORMS.banana,
    'birds.mjs': FORMS.potassium,
  };
  const server = await serveStore(t, files);
  await server.until(({ models }) => models.length === 3 && models.every(({ state }) => state === 'ready'));
  for (const [name, answer] of [
    ['cats', { says: 5 }],
    ['dogs', { banana: 5 }],
    ['birds', { potassium: 5 }],
  ] as const)
    for (const path of [
      `/predictions/${name}`,
      `/invocations?model_name=${name}`,
      `/models/${name}/invoke`,
      `/${name}/predict`,
      `/models/${name}/`,
    ])
      assert.deepEqual((await call(server.url + path, '5')).json(), answer, path);
  const { text } = await call(`${server.url}/ping`, null, {}, { method: 'GET' });
  assert.equal(text, '{\n  "status": "Healthy"\n}\n');
  await server.stop();
});

test(
  'the log names the model in each line of a worker, of a call and of a death, also where there is only one',
  LIMIT,
  async (t) => {
    const { folder } = editedApp(t, { 'store/cats.mjs': FORMS.mortal });
    const args = ['--model-store', 'store', '--management-port', '0', '--models', 'all', '--access-log'];
    const server = await startHere(null, { args, cwd: folder, t, expectedRestarts: 1 });
    await server.untilPrinted(/worker cats\/0 is ready/);
    await server.untilPrinted('Model cats loaded.');
    const { headers } = await call(`${server.url}/predictions/cats`, '1');
    await call(`${server.url}/predictions/cats`, '"die"');
    for (const line of [
      new RegExp(`^\\[worker cats/0, requestID ${headers.get('x-request-id')}\\] a line of its own$`, 'm'),
      /POST \/predictions\/cats.*"model":"cats".*"status":200/,
      /worker cats\/0 died \(exit code 3\)/,
      /POST \/predictions\/cats.*"model":"cats".*"status":500/,
    ])
      await server.untilPrinted(line);
    await server.stop();
  },
);

const UNKNOWN = 'Requested resource is not found, please refer to API document.';
const WRONG_METHOD = 'Requested method is not allowed, please refer to API document.';
const BROKEN = 'The path of the request cannot be read';

/** The beginning of each message. */
const REFUSALS = [
  ['GET /', 405, 'MethodNotAllowedException', WRONG_METHOD],
  ['POST /', 405, 'MethodNotAllowedException', WRONG_METHOD],
  ['GET /nothing', 404, 'ResourceNotFoundException', UNKNOWN],
  ['GET /predictions', 404, 'ResourceNotFoundException', UNKNOWN],
  ['POST /models/cats/a/b', 404, 'ResourceNotFoundException', UNKNOWN],
  ['POST /nobody/predict', 404, 'ModelNotFoundException', 'Model not found: nobody'],
  ['POST /predictions/nobody', 404, 'ModelNotFoundException', 'Model not found: nobody'],
  ['POST /models/nobody/', 404, 'ModelNotFoundException', 'There is no model "nobody"'],
  ['POST /healthcheck', 405, 'MethodNotAllowedException', WRONG_METHOD],
  ['GET /_k/status', 404, 'ModelNotFoundException', 'The request names no model, and no model answers on /'],
  ['GET /start/v4/', 405, 'MethodNotAllowedException', WRONG_METHOD],
  ['GET /%zz', 400, 'BadRequestException', BROKEN],
  ['NONSENSE', 400, 'BadRequestException', 'Invalid HTTP message.'],
] as const;

async function assertSaid(
  server: Server,
  request: string,
  [status, type, message]: readonly [number, string, string],
): Promise<void> {
  const [method = '', path] = request.split(' ');
  const text =
    path === undefined
      ? 'NONSENSE\r\n\r\n'
      : `${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`;
  const { body, headers, ...reply } = await RawConnection.ask(server, text);
  const said = JSON.parse(body) as { code: number; type: string; message: string };
  assert.deepEqual([reply.status, said.code, said.type], [status, status, type]);
  assert.ok(said.message.startsWith(message), said.message);
  assert.equal(body, `${JSON.stringify(said, null, 2)}\n`);
  for (const [name, value] of Object.entries({ ...NO_CACHE, connection: 'close' }))
    assert.equal(headers[name], value, name);
  assert.equal(headers['content-type'], 'application/json');
}

test('a server of a store with one model', LIMIT, async (t) => {
  const server = await serveStore(t, { 'cats.mjs': SERVICE });
  await server.until(({ state }) => state === 'ready');

  await t.test('calls it where none is named', async () => {
    assert.deepEqual((await call(`${server.url}/invocations`, '5')).json(), { says: 5 });
  });

  for (const [request, ...said] of REFUSALS)
    await t.test(`${request}: ${said[0]} ${said[1]}, in the words of Multi Model Server`, () =>
      assertSaid(server, request, said),
    );

  await t.test(
    'a request line and headers may be longer than on Multi Model Server, up to 16 KB together',
    async () => {
      const request = (line: number, header: number): string =>
        `GET /ping?${'x'.repeat(line)} HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(header)}\r\n\r\n`;
      for (const [line, header] of [
        [6000, 0],
        [0, 12_000],
      ] as const)
        assert.equal((await RawConnection.ask(server, request(line, header))).status, 200);
      const { status, headers, body } = await RawConnection.ask(server, request(6000, 12_000));
      assert.deepEqual([status, headers['connection']], [400, 'close']);
      assert.deepEqual(JSON.parse(body), {
        code: 400,
        type: 'BadRequestException',
        message: 'Invalid HTTP message.',
      });
    },
  );

  await t.test('the gateway answers its own clients as ever', async () => {
    const answer = await call(`${server.url}/start/v4/`, '{"modelKey":"x","modelInputs":1}');
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.json<{ modelOutputs: unknown }>().modelOutputs, [{ says: 1 }]);
  });

  await t.test(
    "Banana's clients find their id again on the paths of the house, others under one name",
    async () => {
      const headers = { 'content-type': 'application/json', 'x-banana-request-id': 'mine' };
      for (const [path, sentBack] of [
        ['/models/cats/', 'mine'],
        ['/models/nobody/', 'mine'],
        ['/predictions/cats', null],
      ] as const) {
        const answer = await call(server.url + path, '5', headers);
        assert.equal(answer.headers.get('x-request-id'), 'mine', path);
        assert.equal(answer.headers.get('x-banana-request-id'), sentBack, path);
      }
    },
  );

  await t.test('probes and the status page are answered as the house does', async () => {
    for (const [path, state] of [
      ['/livez', 'alive'],
      ['/readyz', 'ready'],
      ['/readyz/cats', 'ready'],
      ['/status', 'ready'],
    ] as const) {
      const answer = await call(server.url + path, null, {}, { method: 'GET' });
      assert.deepEqual([answer.status, answer.json<{ state: string }>().state], [200, state], path);
    }
  });

  await t.test('OPTIONS of the root allows nothing else', async () => {
    const { status, headers, text } = await call(server.url, null, {}, { method: 'OPTIONS' });
    assert.deepEqual([status, headers.get('allow')], [200, 'OPTIONS']);
    assert.equal(text, (await call(`${server.url}/api-description`, null, {}, { method: 'GET' })).text);
  });
  await server.stop();
});

test('a server without models is Healthy, and has none to invoke', LIMIT, async (t) => {
  const server = await serveStore(t, {});
  assert.equal((await call(`${server.url}/ping`, null, {}, { method: 'GET' })).status, 200);
  const { text } = await call(`${server.url}/invocations`, '1');
  assert.match(text, /"message": "Parameter model_name is required\."/);
  await server.stop();
});

const BROKEN_SERVICE = `throw new Error('the weights are missing'); export function handle() {}`;

test('a model that cannot start leaves the server up, and makes it Unhealthy', LIMIT, async (t) => {
  const server = await serveStore(t, { 'cats.mjs': BROKEN_SERVICE });
  await server.untilPrinted('Staying up and answering 503 for this model');
  const ping = await call(`${server.url}/ping`, null, {}, { method: 'GET' });
  assert.deepEqual([ping.status, ping.json()], [503, { status: 'Unhealthy' }]);
  assert.equal((await call(`${server.url}/predictions/cats`, '1')).status, 503);
  await server.stop('SIGTERM', 1);
});

test('with --on-crash-loop exit, a server whose only model cannot start ends', LIMIT, async (t) => {
  const { folder } = editedApp(t, { 'store/cats.mjs': BROKEN_SERVICE });
  const args = ['--model-store', 'store', '--models', 'all', '--on-crash-loop', 'exit'];
  const server = await startHere(null, { args, cwd: folder, t });
  assert.deepEqual(await server.ended, { code: 3, signal: null });
  assert.match(server.stderr(), /the weights are missing/);
});
