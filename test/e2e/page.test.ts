/** The page at `/`: who gets it, in which coding, with which headers, on which listeners. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { ServeOptions } from '../../supervisor/plan/given-options.js';
import { serve } from '../../supervisor/serve.js';
import type { ServerHandle } from '../../supervisor/server/server-handle.js';
import { holdPort } from '../helpers/held-port.js';
import { INDEX, SCRIPT, makePageFolder } from '../helpers/page-folder.js';
import { fixture } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
const AXIOS = 'application/json, text/plain, */*';
const KEY = 's3cret';
const PAGE = 'https://app.example.com';
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const pageFolder = makePageFolder({ after });

interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** `line`: such as `GET /`. */
async function send(url: string, line: string, headers: Record<string, string> = {}): Promise<Reply> {
  const [method = '', path = ''] = line.split(' ');
  const request = httpRequest(`${url}${path}`, { method, headers });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const body = Buffer.concat((await response.toArray()) as Buffer[]);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

function startWith(options: ServeOptions): Promise<ServerHandle> {
  const given = { host: '127.0.0.1', port: 0, logLevel: 'silent', cwd: pageFolder } as const;
  return serve({ ...given, ...options }, { pageFolder });
}

describe('GET / of an app', LIMIT, () => {
  let server: ServerHandle;
  before(async () => {
    server = await startWith({ app: fixture('echoes.mjs') });
    await server.ready;
  });
  after(() => server.close());

  test('is the page for a browser', async () => {
    const { status, headers, body } = await send(server.url, 'GET /', { accept: BROWSER });
    assert.deepEqual([status, body.toString()], [200, INDEX]);
    assert.equal(headers['content-type'], 'text/html; charset=utf-8');
    assert.equal(headers['cache-control'], 'no-cache');
    assert.match(headers.vary ?? '', /\bAccept\b/);
    assert.ok(headers['x-request-id']);
  });

  test('is the page for a client that takes text only', async () => {
    assert.equal((await send(server.url, 'GET /', { accept: 'text/*' })).body.toString(), INDEX);
  });

  test('HEAD has the same headers, and no body', async () => {
    const { status, headers, body } = await send(server.url, 'HEAD /', { accept: BROWSER });
    assert.deepEqual([status, headers['content-length'], body.length], [200, String(INDEX.length), 0]);
  });

  for (const [what, headers] of [
    ['*/*', { accept: '*/*' }],
    ['no Accept', {}],
    ["axios' Accept", { accept: AXIOS }],
    ['JSON before HTML', { accept: 'application/json, text/html' }],
  ] as const) {
    test(`is what it was for a client with ${what}, and caches keep them apart`, async () => {
      const { status, headers: got } = await send(server.url, 'GET /', headers);
      assert.deepEqual([status, got.allow, got.vary], [405, 'POST, OPTIONS', 'Accept']);
    });
  }

  test('may run its own scripts and nothing else, and sends no other site its address', async () => {
    for (const path of ['/', '/_k/page/page-abc.js']) {
      const { headers } = await send(server.url, `GET ${path}`, { accept: BROWSER });
      assert.equal(headers['content-security-policy'], POLICY);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['referrer-policy'], 'no-referrer');
    }
  });

  for (const [coding, decode] of [
    ['br', brotliDecompressSync],
    ['gzip', gunzipSync],
    ['identity', (bytes: Buffer) => bytes],
  ] as const) {
    test(`its files are sent in ${coding} to a client that wants that, and may be kept for ever`, async () => {
      const sent = { 'accept-encoding': coding };
      const { status, headers, body } = await send(server.url, 'GET /_k/page/page-abc.js', sent);
      assert.deepEqual([status, decode(body).toString()], [200, SCRIPT]);
      assert.equal(headers['content-encoding'] ?? 'identity', coding);
      assert.equal(headers['content-length'], String(body.length));
      assert.equal(headers['content-type'], 'text/javascript; charset=utf-8');
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
      assert.equal(headers.vary, 'Accept-Encoding');
    });
  }

  for (const path of [
    'index.html',
    'licenses.txt',
    'page-abc.js.br',
    'manifest.json',
    '..%2fpage-abc.js',
    '',
  ]) {
    test(`no other file is to be had: /_k/page/${path}`, async () => {
      assert.equal((await send(server.url, `GET /_k/page/${path}`)).status, 404);
    });
  }

  test("other methods are the app's", async () => {
    const reply = await fetch(server.url, {
      method: 'POST',
      body: '{}',
      headers: { accept: BROWSER, 'content-type': 'application/json' },
    });
    assert.equal(reply.status, 200);
    assert.equal((await send(server.url, 'POST /_k/page/page-abc.js')).status, 404);
  });
});

describe('GET / of a server with a key', LIMIT, () => {
  let server: ServerHandle;
  before(async () => {
    server = await startWith({ app: fixture('echoes.mjs'), apiKey: KEY, corsOrigin: PAGE });
  });
  after(() => server.close());

  test('needs no key, nor do its files; everything else does', async () => {
    assert.equal((await send(server.url, 'GET /', { accept: BROWSER })).status, 200);
    assert.equal((await send(server.url, 'GET /_k/page/page-abc.js')).status, 200);
    for (const path of ['/', '/_k/live', '/_k/page/other.js'])
      assert.equal((await send(server.url, `GET ${path}`, { accept: '*/*' })).status, 401, path);
  });

  test('its Vary stands beside that of the origins', async () => {
    const page = await send(server.url, 'GET /', { accept: BROWSER });
    const other = await send(server.url, 'GET /', { accept: '*/*' });
    assert.deepEqual(
      [page.headers.vary, other.headers.vary],
      ['Origin, Accept, Accept-Encoding', 'Origin, Accept'],
    );
  });
});

describe('GET / of a server of a model store', LIMIT, () => {
  let server: ServerHandle;
  before(async () => {
    const store = fixture('lib').replace(/\/lib$/, '');
    const shared = { host: '127.0.0.1', port: 0, managementPort: 0 } as const;
    server = await startWith({ modelStore: store, ...shared });
  });
  after(() => server.close());

  test('is the page for a browser; for others it is what it was', async () => {
    assert.equal((await send(server.url, 'GET /', { accept: BROWSER })).body.toString(), INDEX);
    const { status, headers, body } = await send(server.url, 'GET /', { accept: '*/*' });
    assert.deepEqual([status, headers.vary], [405, 'Accept']);
    assert.match(body.toString(), /"type": "MethodNotAllowedException"/);
  });

  test("there is no page on the management API's own listener", async () => {
    const { status } = await send(server.managementUrl as string, 'GET /', { accept: BROWSER });
    assert.equal(status, 405);
  });

  test('its data is refused in the words of Multi Model Server', async () => {
    assert.equal((await send(server.url, 'HEAD /_k/live')).status, 200);
    const { body } = await send(server.url, 'GET /_k/live/', {});
    assert.match(body.toString(), /"type": "ResourceNotFoundException"/);
  });
});

test('a listener that the management API shares has the page', LIMIT, async (t) => {
  const port = await holdPort();
  const shared = { port, managementHost: '127.0.0.1', managementPort: port, managementInsecure: true };
  const server = await startWith({ app: fixture('echoes.mjs'), modelStore: pageFolder, ...shared });
  t.after(() => server.close());
  assert.equal(server.managementUrl, server.url);
  assert.equal((await send(server.url, 'GET /', { accept: BROWSER })).body.toString(), INDEX);
  const { status, headers } = await send(server.url, 'GET /models', { accept: BROWSER });
  assert.deepEqual([status, headers.vary], [200, undefined]);
});

test('the page is there while the first worker is still loading the app', LIMIT, async (t) => {
  const server = await startWith({ app: fixture('hangs-in-import.mjs') });
  t.after(() => server.kill());
  server.ready.catch(() => {}); // it is killed before
  assert.equal((await send(server.url, 'GET /', { accept: BROWSER })).status, 200);
});

test('page: false takes it away, and with it Vary', LIMIT, async (t) => {
  const server = await startWith({ app: fixture('echoes.mjs'), page: false });
  t.after(() => server.close());
  await server.ready;
  const { status, headers } = await send(server.url, 'GET /', { accept: BROWSER });
  assert.deepEqual([status, headers.vary], [405, undefined]);
  assert.equal((await send(server.url, 'GET /_k/page/page-abc.js')).status, 404);
});

test('with --compress its files are those of the build', LIMIT, async (t) => {
  const server = await startWith({ app: fixture('echoes.mjs'), compress: true });
  t.after(() => server.close());
  const sent = { 'accept-encoding': 'gzip' };
  const { headers, body } = await send(server.url, 'GET /_k/page/page-abc.js', sent);
  assert.deepEqual([headers['content-encoding'], gunzipSync(body).toString()], ['gzip', SCRIPT]);
});
