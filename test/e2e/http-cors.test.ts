/** Pages of other origins: the ones that may call, and the headers of preflights and of every reply. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { startManaged } from '../helpers/managed-server.js';
import { RawConnection } from '../helpers/raw-http.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';
import { fixture } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const KEY = 's3cret';
const PAGE = 'https://app.example.com';
const OTHER_PAGE = 'http://localhost:5173';
const STRANGER = 'https://evil.example.com';
const EXPOSED =
  'X-Request-Id, X-Banana-Request-Id, X-Banana-Job-Id, Location, Server-Timing, Retry-After, Retry-After-Ms, X-Should-Retry, X-Banana-Model, Inference-Header-Content-Length';

interface Reply {
  readonly status: number;
  /** Every line with that name, in its order. */
  all(name: string): string[];
  /** Names in lower case, as sent. */
  readonly names: readonly string[];
  readonly text: string;
}

interface Sent {
  readonly origin?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly key?: string | null;
}

/** `line`: such as `POST /`. */
async function send({ url }: { readonly url: string }, line: string, sent: Sent = {}): Promise<Reply> {
  const [method = '', path = ''] = line.split(' ');
  const { origin, body = '', key = KEY } = sent;
  const headers: Record<string, string> = { 'content-type': 'application/json', ...sent.headers };
  if (origin !== undefined) headers['origin'] = origin;
  if (key !== null) headers['x-banana-api-key'] = key;
  const request = httpRequest(`${url}${path}`, { method, headers });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const chunks = (await response.toArray()) as Buffer[];
  const { rawHeaders } = response;
  const names = rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
  return {
    status: response.statusCode ?? 0,
    all: (name) => names.flatMap((one, i) => (one === name ? [rawHeaders[2 * i + 1] as string] : [])),
    names,
    text: Buffer.concat(chunks).toString(),
  };
}

function preflight(method: string, headers = ''): Readonly<Record<string, string>> {
  const asked: Record<string, string> = headers === '' ? {} : { 'access-control-request-headers': headers };
  return { 'access-control-request-method': method, ...asked };
}

function corsHeaders({ names }: Reply): string[] {
  return names.filter((name) => name.startsWith('access-control-') || name === 'vary');
}

/** One request for every kind of reply: an answer, a stream, a job, errors of the app, the front and the gateway, health and status. */
const REPLIES: readonly (readonly [line: string, status: number, sent?: Sent])[] = [
  ['POST /', 200, { body: '{"a":1}' }],
  ['POST /stream', 200, { body: '{}' }],
  ['POST /later', 200, { body: '{}' }],
  ['POST /throws', 500, { body: '{}' }],
  ['POST /bad-header', 500, { body: '{}' }],
  ['POST /', 400, { body: '{"a":' }],
  ['POST /', 413, { body: `"${'x'.repeat(3000)}"` }],
  ['POST /', 401, { body: '{}', key: 'wrong' }],
  ['POST /nowhere', 404, { body: '{}' }],
  ['GET /nowhere', 404],
  ['GET /', 405],
  ['OPTIONS /', 200], // without Access-Control-Request-Method no browser asks for leave
  ['POST /start/v4/', 200, { body: '{"modelInputs":{"a":1}}' }],
  ['POST /check/v4/', 200, { body: '{"callID":"call_unknown"}' }],
  ['GET /healthcheck', 200, { key: null }],
  ['GET /status', 200],
  ['GET /_k/status', 200],
  ['POST /_k/warmup', 200],
  ['GET /_k/jobs/unknown', 404],
];

const APP = fixture('own-cors.mjs');
const argsFor = (origins: string, ...others: readonly string[]): string[] => [
  ...['--cors-origin', origins, '--api-key', KEY, '--max-body', '2kb'],
  ...others,
];

describe('--cors-origin with a list', LIMIT, () => {
  const shared = shareHere(APP, { args: argsFor(`${PAGE}, ${OTHER_PAGE}`) });

  for (const [line, status, sent] of REPLIES) {
    test(`${line} (${status}) can be read by the pages of the list, and by no others`, async () => {
      for (const origin of [PAGE, OTHER_PAGE]) {
        const reply = await send(shared.server, line, { ...sent, origin });
        assert.equal(reply.status, status, reply.text);
        assert.deepEqual(reply.all('access-control-allow-origin'), [origin]);
        assert.deepEqual(reply.all('vary'), [line === 'GET /' ? 'Origin, Accept' : 'Origin']);
        assert.deepEqual(reply.all('access-control-expose-headers'), [EXPOSED]);
        assert.deepEqual(reply.all('access-control-allow-credentials'), []);
      }
      const strange = await send(shared.server, line, { ...sent, origin: STRANGER });
      assert.equal(strange.status, status, 'a client that is no browser is not stopped');
      assert.deepEqual(corsHeaders(strange), ['vary']);
      assert.deepEqual(
        corsHeaders(await send(shared.server, line, sent)),
        ['vary'],
        'nor is a request without an origin',
      );
    });
  }

  for (const origin of [
    'https://app.example.com:8443',
    'http://app.example.com',
    'null',
    `${PAGE}.evil.com`,
  ]) {
    test(`${origin} is not the page of the list`, async () => {
      assert.deepEqual(corsHeaders(await send(shared.server, 'POST /', { origin, body: '1' })), ['vary']);
    });
  }

  for (const path of ['/', '/nowhere', '/start/v4/', '/status']) {
    test(`a preflight of ${path} needs no key, and is the same for every path`, async () => {
      const headers = preflight('POST', 'content-type,x-banana-api-key,x-mine');
      const reply = await send(shared.server, `OPTIONS ${path}`, { origin: PAGE, headers, key: null });
      assert.deepEqual([reply.status, reply.text], [204, '']);
      assert.deepEqual(reply.all('access-control-allow-origin'), [PAGE]);
      assert.deepEqual(reply.all('access-control-allow-methods'), ['GET, HEAD, POST']);
      assert.deepEqual(reply.all('access-control-allow-headers'), ['content-type,x-banana-api-key,x-mine']);
      assert.deepEqual(reply.all('access-control-max-age'), ['7200']);
      assert.deepEqual(reply.all('vary'), ['Origin']);
      assert.match(reply.all('x-request-id').join(), /^\w{32}$/);
      const strange = await send(shared.server, `OPTIONS ${path}`, { origin: STRANGER, headers, key: null });
      assert.deepEqual([strange.status, corsHeaders(strange)], [204, ['vary']]);
    });
  }

  test('a preflight that asks for no headers, or for GET, is granted', async () => {
    const reply = await send(shared.server, 'OPTIONS /status', {
      origin: PAGE,
      headers: preflight('GET'),
      key: null,
    });
    assert.equal(reply.status, 204);
    assert.deepEqual(reply.all('access-control-allow-headers'), []);
  });

  test('a preflight without Host is 400, like every request', async () => {
    const connection = await RawConnection.open(shared.server);
    connection.send(`OPTIONS / HTTP/1.1\r\nOrigin: ${PAGE}\r\nAccess-Control-Request-Method: POST\r\n\r\n`);
    const { status, headers } = await connection.reply();
    assert.deepEqual([status, headers['access-control-allow-origin']], [400, PAGE]);
    connection.destroy();
  });

  test('OPTIONS that is no preflight needs a key', async () => {
    const refused = await send(shared.server, 'OPTIONS /', { origin: PAGE, key: null });
    assert.equal(refused.status, 401);
    assert.match(refused.text, /^\{"error":\{"code":"SERVE_UNAUTHORIZED"/);
    assert.equal(
      (await send(shared.server, 'OPTIONS /', { headers: preflight('POST'), key: null })).status,
      401,
    );
  });

  test('preflights are not counted as calls', async () => {
    const countOf = async (): Promise<unknown> =>
      (JSON.parse((await send(shared.server, 'GET /_k/status')).text) as Record<string, unknown>)[
        'sequence_number'
      ];
    const before = await countOf();
    await send(shared.server, 'OPTIONS /', { origin: PAGE, headers: preflight('POST') });
    assert.equal(await countOf(), before);
  });

  test('a CORS header of the app takes the place of ours', async () => {
    const reply = await send(shared.server, 'POST /own', { origin: PAGE, body: '{}' });
    assert.deepEqual(reply.all('access-control-allow-origin'), ['https://its-own.test']);
    assert.deepEqual(reply.all('access-control-expose-headers'), ['X-Model']);
  });

  test("an app's Vary header stands beside ours", async () => {
    const reply = await send(shared.server, 'POST /varies', { origin: PAGE, body: '{}' });
    assert.deepEqual(reply.all('vary').sort(), ['Accept', 'Origin']);
  });

  test('no header of an answer that cannot be sent is left on its error', async () => {
    const reply = await send(shared.server, 'POST /bad-header', { origin: PAGE, body: '{}' });
    assert.deepEqual([reply.all('x-model'), reply.all('content-encoding')], [[], []]);
    assert.match(reply.text, /SERVE_OUTPUT_INVALID/);
  });

  test('a browser client reads its ids, its job and the times', async () => {
    const reply = await send(shared.server, 'POST /later', {
      origin: PAGE,
      body: '{}',
      headers: { 'x-banana-request-id': 'mine' },
    });
    const exposed = reply.all('access-control-expose-headers').join().toLowerCase();
    for (const name of ['x-request-id', 'x-banana-request-id', 'x-banana-job-id', 'location']) {
      assert.equal(reply.all(name).length, 1, name);
      assert.ok(exposed.includes(name), name);
    }
  });
});

describe('--cors-origin *', LIMIT, () => {
  const shared = shareHere(APP, { args: argsFor('*') });

  for (const [line, status, sent] of REPLIES) {
    test(`${line} (${status}) can be read by every page`, async () => {
      for (const origin of [STRANGER, 'null']) {
        const reply = await send(shared.server, line, { ...sent, origin });
        assert.equal(reply.status, status, reply.text);
        assert.deepEqual(reply.all('access-control-allow-origin'), ['*']);
        assert.deepEqual(reply.all('access-control-expose-headers'), [EXPOSED]);
        assert.deepEqual(reply.all('vary'), line === 'GET /' ? ['Accept'] : []);
      }
    });
  }

  test('a preflight is granted to every page', async () => {
    const headers = preflight('POST', 'authorization');
    const reply = await send(shared.server, 'OPTIONS /', { origin: 'null', headers, key: null });
    assert.deepEqual([reply.status, reply.all('access-control-allow-origin')], [204, ['*']]);
    assert.deepEqual(reply.all('access-control-allow-headers'), ['authorization'], 'which no * would cover');
  });
});

test('without --cors-origin no reply has a CORS header', LIMIT, async (t) => {
  const server = await startHere(APP, { t });
  for (const line of ['POST /', 'GET /status', 'POST /nowhere'])
    assert.deepEqual(corsHeaders(await send(server, line, { origin: PAGE, body: '{}' })), [], line);
  const asked = await send(server, 'OPTIONS /', { origin: PAGE, headers: preflight('POST') });
  assert.deepEqual([asked.status, asked.all('allow'), corsHeaders(asked)], [200, ['POST, OPTIONS'], []]);
  const own = await send(server, 'POST /own', { origin: server.url, body: '{}' });
  assert.deepEqual(own.all('access-control-allow-origin'), ['https://its-own.test']);
  await server.stop();
});

describe('--cors-methods and --cors-headers', LIMIT, () => {
  const limits = ['--cors-methods', 'post, DELETE', '--cors-headers', 'Content-Type, X-Mine'];
  const asked = preflight('PUT', 'x-anything');

  test('are the answer to a preflight, on our own paths and those of Multi Model Server', async (t) => {
    const server = await startHere(APP, { t, args: argsFor(PAGE, ...limits) });
    for (const path of ['/', '/nowhere', '/ping', '/predictions/own-cors', '/models/own-cors/invoke']) {
      const reply = await send(server, `OPTIONS ${path}`, { origin: PAGE, headers: asked, key: null });
      assert.equal(reply.status, 204, path);
      assert.deepEqual(reply.all('access-control-allow-origin'), [PAGE]);
      assert.deepEqual(reply.all('access-control-allow-methods'), ['POST, DELETE']);
      assert.deepEqual(reply.all('access-control-allow-headers'), ['Content-Type, X-Mine']);
      const strange = await send(server, `OPTIONS ${path}`, { origin: STRANGER, headers: asked });
      assert.deepEqual([strange.status, corsHeaders(strange)], [204, ['vary']]);
    }
    await server.stop();
  });

  test('hold for the management API, too, whose pages are those that are named', async (t) => {
    const given = { corsMethods: ['post', 'DELETE'], corsHeaders: ['Content-Type', 'X-Mine'] };
    const { managementUrl: url } = await startManaged(t, { corsOrigin: PAGE, ...given });
    const api = { url };
    const leave = await send(api, 'OPTIONS /models/m', { origin: PAGE, headers: asked, key: null });
    assert.deepEqual(leave.all('access-control-allow-methods'), ['POST, DELETE']);
    const list = await send(api, 'GET /models', { origin: PAGE, key: null });
    assert.deepEqual([list.status, list.all('access-control-allow-origin')], [200, [PAGE]]);
    const strange = await send(api, 'GET /models', { origin: STRANGER, key: null });
    assert.deepEqual([strange.status, corsHeaders(strange)], [403, ['vary']]);
  });

  test('without --cors-origin the start warns that they have no effect', async (t) => {
    const server = await startHere(APP, { t, args: limits });
    await server.untilPrinted('--cors-methods: it has no effect without --cors-origin');
    await server.untilPrinted('--cors-headers: it has no effect without --cors-origin');
    const reply = await send(server, 'POST /', { origin: PAGE, body: '1' });
    assert.deepEqual(corsHeaders(reply), []);
    await server.stop();
  });
});
