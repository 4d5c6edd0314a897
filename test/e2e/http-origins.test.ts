/** Pages of other origins in front of the real server: which requests of theirs are refused, and in which words. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RawConnection, type RawReply } from '../helpers/raw-http.js';
import { fixture } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { Refused, openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };
const APP = fixture('websockets.mjs');
const KEY = 's3cret';
const PAGE = 'https://app.example.com';
const STRANGER = 'https://evil.example.com';
const FROM_STRANGER = { origin: STRANGER };

type Headers = Readonly<Record<string, string>>;

/** Sends a request with a small body and these headers. `line`: such as `POST /`. */
async function send(
  server: { readonly url: string },
  line: string,
  headers: Headers = {},
): Promise<RawReply> {
  const { host } = new URL(server.url);
  const all = { host, 'content-type': 'application/json', 'content-length': '2', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return RawConnection.ask(server, `${line} HTTP/1.1\r\n${lines.join('')}\r\n{}`);
}

async function opens(
  t: Parameters<typeof openSocket>[0],
  server: { readonly url: string },
  headers: Headers,
): Promise<number> {
  try {
    (await openSocket(t, server, '/echo', { ...headers })).socket.terminate();
    return 101;
  } catch (thrown) {
    assert.ok(thrown instanceof Refused);
    assert.equal(thrown.code, 'SERVE_ORIGIN_REFUSED');
    return thrown.status;
  }
}

describe('a server without a key', LIMIT, () => {
  const shared = shareHere(APP);
  const asked = (line: string, headers?: Headers): Promise<RawReply> => send(shared.server, line, headers);

  for (const headers of [FROM_STRANGER, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }] as const) {
    test(`refuses the call of a page with ${JSON.stringify(headers)}, which the app never sees`, async () => {
      const calls = async (): Promise<number> =>
        (JSON.parse((await asked('POST /')).body) as { calls: number }).calls;
      const before = await calls();
      const reply = await asked('POST /', { 'content-type': 'text/plain', ...headers });
      assert.equal(reply.status, 403);
      assert.match(
        reply.body,
        /^\{"error":\{"code":"SERVE_ORIGIN_REFUSED","message":"Pages of .*--cors-origin/,
      );
      assert.equal(await calls(), before + 1);
    });
  }

  for (const [line, status, words] of [
    ['POST /nowhere', 403, /SERVE_ORIGIN_REFUSED/],
    ['POST /models/websockets/held', 403, /SERVE_ORIGIN_REFUSED/],
    [
      'GET /predictions/websockets',
      403,
      /"code": 403,\s+"type": "ForbiddenException",\s+"message": "Pages of/,
    ],
    ['POST /_k/warmup', 403, /SERVE_ORIGIN_REFUSED/],
    ['POST /start/v4/', 200, /"message":"inference server error: Pages of .*"code":"SERVE_ORIGIN_REFUSED"/],
    ['GET /status', 200, /"state":"ready"/],
    ['GET /livez', 200, /alive/],
    ['GET /_k/warmup', 200, /true/],
    ['GET /ping', 200, /Healthy/],
  ] as const) {
    test(`answers ${line} of a page with ${status}, in the words of its dialect`, async () => {
      const { status: got, body } = await asked(line, FROM_STRANGER);
      assert.equal(got, status);
      assert.match(body, words);
    });
  }

  test('refuses before the body is sent', async () => {
    const { headers, status } = await asked('POST /', { ...FROM_STRANGER, expect: '100-continue' });
    assert.deepEqual([status, headers['connection']], [403, 'close']);
  });

  test('takes the call of its own page, and a preflight of any', async () => {
    const { host } = new URL(shared.server.url);
    const own = { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' };
    assert.equal((await asked('POST /', own)).status, 200);
    const preflight = { ...FROM_STRANGER, 'access-control-request-method': 'POST' };
    assert.equal((await asked('OPTIONS /', preflight)).status, 200);
  });

  test('opens a WebSocket for its own page and for programs, and for no other page', async (t) => {
    const { server } = shared;
    assert.equal(await opens(t, server, {}), 101);
    assert.equal(await opens(t, server, { origin: server.url }), 101);
    assert.equal(await opens(t, server, FROM_STRANGER), 403);
    assert.equal(await opens(t, server, { origin: 'null' }), 403);
  });
});

describe('a server without a key that lists a page', LIMIT, () => {
  const shared = shareHere(APP, { args: ['--cors-origin', PAGE] });

  test('takes the calls of that page and its own, and of no other', async (t) => {
    const { server } = shared;
    for (const [origin, isTaken] of [
      [PAGE, true],
      [server.url, true],
      [STRANGER, false],
    ] as const) {
      assert.equal((await send(server, 'POST /', { origin })).status, isTaken ? 200 : 403, origin);
      assert.equal(await opens(t, server, { origin }), isTaken ? 101 : 403, origin);
    }
  });
});

describe('a server without a key that lists every page', LIMIT, () => {
  const shared = shareHere(APP, { args: ['--cors-origin', '*'] });

  test('takes the calls of every page', async (t) => {
    const { server } = shared;
    assert.equal((await send(server, 'POST /', { 'sec-fetch-site': 'cross-site' })).status, 200);
    assert.equal((await send(server, 'POST /', FROM_STRANGER)).status, 200);
    assert.equal(await opens(t, server, FROM_STRANGER), 101);
  });
});

describe('a server with a key', LIMIT, () => {
  const key = { 'x-banana-api-key': KEY };

  describe('and no list of pages', () => {
    const shared = shareHere(APP, { args: ['--api-key', KEY] });

    test('takes the calls and WebSockets of every page that has the key', async (t) => {
      const { server } = shared;
      assert.equal((await send(server, 'POST /', { ...FROM_STRANGER, ...key })).status, 200);
      assert.equal((await send(server, 'POST /', FROM_STRANGER)).status, 401);
      assert.equal(await opens(t, server, { ...FROM_STRANGER, ...key }), 101);
    });
  });

  describe('and a list of pages', () => {
    const shared = shareHere(APP, { args: ['--api-key', KEY, '--cors-origin', PAGE] });

    test('opens WebSockets for these pages and its own only; calls need the key alone', async (t) => {
      const { server } = shared;
      assert.equal((await send(server, 'POST /', { ...FROM_STRANGER, ...key })).status, 200);
      assert.equal(await opens(t, server, { origin: PAGE, ...key }), 101);
      assert.equal(await opens(t, server, { origin: server.url, ...key }), 101);
      assert.equal(await opens(t, server, { ...FROM_STRANGER, ...key }), 403);
    });
  });
});

describe('a server of a model store', LIMIT, () => {
  const args = ['--model-store', fixture('lib').replace(/\/lib$/, ''), '--models', 'works.mjs'];
  const shared = shareHere(null, { args });

  test('refuses the calls of pages in the words of Multi Model Server', async () => {
    for (const line of ['GET /predictions/works', 'POST /predictions/works', 'PUT /invocations']) {
      const { status, body } = await send(shared.server, line, FROM_STRANGER);
      assert.equal(status, 403, line);
      assert.match(body, /"type": "ForbiddenException"/);
    }
    assert.equal((await send(shared.server, 'GET /ping', FROM_STRANGER)).status, 200);
  });
});
