/** The listener of the management API: where it is, who may ask, and that it opens and closes with the server. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import { serve } from '../../supervisor/serve.js';
import { startManaged } from '../helpers/managed-server.js';
import { refusalOf } from '../helpers/refusals.js';
import {
  call,
  eventually,
  fixture,
  runCommand,
  startServer,
  type Server,
  type StartOptions,
} from '../helpers/server.js';
import { holdPort } from '../helpers/held-port.js';
import { editedApp } from '../helpers/edited-app.js';

const LIMIT = { timeout: 240_000 };
const ECHO = fixture('echoes.mjs');

interface ManagedProcess extends Server {
  readonly managementUrl: string;
}

async function startProcess(
  t: TestContext,
  args: readonly string[],
  options: StartOptions = {},
): Promise<ManagedProcess> {
  const server = await startServer(options.cwd === undefined ? ECHO : './app.mjs', { t, args, ...options });
  const line = /the management API is on ([^\s"]+)/;
  await server.untilPrinted(line);
  return { ...server, managementUrl: line.exec(server.stderr())?.[1] as string };
}

/** The status of an answer to `GET /models`, over a socket if the url is one. */
async function statusOf(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<number | undefined> {
  const place = url.startsWith('unix:')
    ? { socketPath: url.slice('unix:'.length) }
    : { hostname: new URL(url).hostname, port: new URL(url).port };
  const asked = request({ ...place, path: '/models', method, headers, agent: false });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [import('node:http').IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

/** Whether a request got past those who look at who asks. */
async function letsIn(url: string, headers: Readonly<Record<string, string>> = {}): Promise<boolean> {
  const status = await statusOf(url, headers);
  assert.notEqual(status, undefined);
  return status !== 401 && status !== 403;
}

describe('the listener of the management API', LIMIT, () => {
  test('is not there unless it is asked for', async (t) => {
    const server = await serve({ app: ECHO, host: '127.0.0.1', port: 0, logLevel: 'silent' });
    t.after(() => server.kill());
    assert.equal(server.managementUrl, null);
    assert.equal((await fetch(`${server.url}/metrics`)).status, 404, 'nor are metrics');
  });

  test('is on this machine only, beside that of the server, and answers until the drain is over, like that', async (t) => {
    const port = ['--management-port', String(await holdPort())];
    const server = await startProcess(t, [...port, '--host', '0.0.0.0', '--drain-lag', '1h']);
    const url = new URL(server.managementUrl);
    assert.equal(url.hostname, '127.0.0.1');
    assert.notEqual(url.port, new URL(server.url).port);
    assert.equal(await letsIn(server.managementUrl), true);
    await server.until(({ state }) => state === 'ready');
    server.process.kill('SIGTERM');
    await server.until(({ state }) => state === 'draining');
    assert.equal(await letsIn(server.managementUrl), true);
    server.process.kill('SIGTERM');
    assert.deepEqual(await server.ended, { code: 143, signal: null });
    await assert.rejects(statusOf(server.managementUrl), { code: 'ECONNREFUSED' });
  });

  test('in use by another program ends the start, which names the flag', async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    t.after(() => other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const args = [ECHO, '--host', '127.0.0.1', '--port', '0', '--management-port', String(port)];
    const command = runCommand(args, { t });
    assert.equal((await command.ended).code, 4);
    assert.equal(
      command.stderr(),
      `banana-serve: port ${port} of 127.0.0.1 is in use by another program. Choose another with --management-port, or --management-port 0 for a free one.\n`,
    );
  });

  test('may be a unix socket, which only its user can open', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-management-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'm.sock');
    const { handle, managementUrl } = await startManaged(t, {
      managementPort: path,
      managementHost: '0.0.0.0',
    });
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(await letsIn(managementUrl, { host: 'whatever' }), true);
    await handle.close();
    assert.equal(existsSync(path), false);
  });
});

describe('without a key, the management API', LIMIT, () => {
  test('refuses pages in browsers, by their origin and by a host that is not its own', async (t) => {
    const { managementUrl } = await startManaged(t, { corsOrigin: 'https://ops.example.com' });
    const { port } = new URL(managementUrl);
    const rows: readonly (readonly [headers: Record<string, string>, isLetIn: boolean])[] = [
      [{}, true],
      [{ origin: 'https://ops.example.com' }, true],
      [{ origin: 'https://evil.example.com' }, false],
      [{ origin: 'null' }, false],
      [{ origin: `http://127.0.0.1:${port}` }, false],
      [{ host: `localhost:${port}` }, true],
      [{ host: 'LOCALHOST' }, true],
      [{ host: `[::1]:${port}` }, true],
      [{ host: `evil.example.com:${port}` }, false],
      [{ host: 'localhost.example.com' }, false],
      [{ host: `127.0.0.1.example.com:${port}` }, false],
      [{ host: `0.0.0.0:${port}` }, false],
      [{ host: 'evil.example.com', origin: 'https://ops.example.com' }, false],
    ];
    for (const [headers, isLetIn] of rows)
      assert.equal(await letsIn(managementUrl, headers), isLetIn, JSON.stringify(headers));
    for (const method of ['POST', 'PUT', 'DELETE'])
      assert.equal(await statusOf(managementUrl, { origin: 'https://evil.example.com' }, method), 403);
  });

  test('refuses pages also where every page may call', async (t) => {
    const { managementUrl } = await startManaged(t, { corsOrigin: '*' });
    assert.equal(await letsIn(managementUrl, { origin: 'https://evil.example.com' }), false);
  });

  test('does not start where others reach it, and names the place of that option', async (t) => {
    const { folder, save } = editedApp(t, { 'app.mjs': 'export const inference = () => 1;' });
    const asked = { app: './app.mjs', cwd: folder };
    const flags = { host: '127.0.0.1', port: '0', managementPort: '0' };
    assert.match(
      await refusalOf({ ...asked, flags: { ...flags, managementHost: '0.0.0.0' } }),
      /^--management-host: 0\.0\.0\.0 is an address that other machines can reach; the/,
    );
    assert.match(
      await refusalOf({ ...asked, flags, env: { BANANA_MANAGEMENT_HOST: '0.0.0.0' } }),
      /^BANANA_MANAGEMENT_HOST: 0\.0\.0\.0 is an address/,
    );
    save('banana.json', '{ "managementHost": "0.0.0.0" }');
    assert.match(
      await refusalOf({ ...asked, flags }),
      /^banana\.json: managementHost: 0\.0\.0\.0 is an address/,
    );
  });

  test('starts there with --management-insecure, with a warning, for any host but for no page', async (t) => {
    const args = ['--management-port', '0', '--management-host', '0.0.0.0'];
    const server = await startProcess(t, args, { env: { BANANA_MANAGEMENT_INSECURE: '1' } });
    await server.untilPrinted('the management API needs no key');
    assert.equal(await letsIn(server.managementUrl, { host: 'mms.lan' }), true);
    assert.equal(await letsIn(server.managementUrl, { origin: 'https://evil.example.com' }), false);
    await server.until(({ state }) => state === 'ready');
    await server.stop();
  });
});

describe('with a key, the management API', LIMIT, () => {
  const LEAKS = 'export const inference = () => ({ env: process.env });';

  test('asks for it, is no call of others, and neither key reaches a worker', async (t) => {
    const { folder } = editedApp(t, { 'app.mjs': LEAKS });
    const env = { BANANA_MANAGEMENT_KEY: 's3cret-manage', BANANA_API_KEY: 's3cret-call' };
    const args = ['--management-port', '0', '--management-host', '0.0.0.0'];
    const server = await startProcess(t, args, { cwd: folder, env, key: 's3cret-call' });
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
    assert.equal(await statusOf(server.managementUrl), 401);
    assert.equal(await statusOf(server.managementUrl, bearer('s3cret-call')), 401);
    assert.equal(await letsIn(server.managementUrl, bearer('s3cret-manage')), true);
    const page = { ...bearer('s3cret-manage'), origin: 'https://ops.example.com', host: 'mms.lan' };
    assert.equal(await letsIn(server.managementUrl, page), true, 'no page has the key by accident');
    const json = { 'content-type': 'application/json' };
    assert.equal((await call(server.url, '{}', { ...json, ...bearer('s3cret-manage') })).status, 401);
    const answer = await call(server.url, '{}', { ...json, ...bearer('s3cret-call') });
    assert.equal(answer.status, 200);
    assert.ok(!answer.text.includes('s3cret'), answer.text);
    assert.ok(!(server.stdout() + server.stderr()).includes('s3cret'));
    await server.stop();
  });

  test('asks for that of calls if it has none of its own', async (t) => {
    const { managementUrl } = await startManaged(t, { apiKey: 's3cret-call' });
    assert.equal(await statusOf(managementUrl), 401);
    assert.equal(await letsIn(managementUrl, { authorization: 'Bearer s3cret-call' }), true);
    assert.equal(await letsIn(managementUrl, { 'x-banana-api-key': 's3cret-call' }), true);
  });
});

test(
  'on the address of the server itself, one listener serves both, and only with a key',
  LIMIT,
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-shared-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'both.sock');
    const both = { port: path, managementPort: path };
    assert.match(
      await refusalOf({ app: ECHO, flags: both }),
      /both\.sock is the address of the server itself; the management API needs a key there/,
    );
    await startManaged(t, { ...both, managementKey: 's3cret' });
    assert.equal(await statusOf(`unix:${path}`), 401, 'GET /models without a key');
    assert.equal(await statusOf(`unix:${path}`, { authorization: 'Bearer s3cret' }), 200);
  },
);

test(
  'the log of what is managed: lines of models that come and go, and of requests, without what a client may hide',
  LIMIT,
  async (t) => {
    const { folder } = editedApp(t, {
      'app.mjs': 'export const inference = () => 1;',
      'store/m.mjs': 'export const inference = () => 1;',
    });
    const store = ['--management-port', '0', '--model-store', 'store', '--management-key', 'k'];
    const args = [...store, '--access-log', '--log-format', 'json'];
    const server = await startProcess(t, args, { cwd: folder });
    const manage = (asked: string, method = 'POST', key = 'k') =>
      call(`${server.managementUrl}/models${asked}`, null, { authorization: `Bearer ${key}` }, { method });

    await t.test(
      'a line about a request that is refused has no query, where a place may be named by a secret',
      async () => {
        assert.equal((await manage('?url=s3cret-place', 'POST', 'wrong')).status, 401);
        await server.untilPrinted('POST /models refused');
        assert.ok(!server.stderr().includes('s3cret-place'), server.stderr());
      },
    );

    await t.test('a request has a line in the access log, which names the model', async () => {
      const linesBefore = requestLines(server).length;
      const asked = [
        ['POST', '?url=m.mjs&secret=in-the-query', 'm', 200],
        ['GET', '', undefined, 200],
        ['GET', '/m/all', 'm', 200],
        ['PUT', '/m/1?min_worker=1&synchronous=true', 'm', 200],
        ['PUT', '/m/9', undefined, 404],
        ['DELETE', '/m', 'm', 200],
      ] as const;
      for (const [method, rest] of asked) await manage(rest, method);
      await server.untilPrinted('DELETE /models/m"');
      const lines = requestLines(server).slice(linesBefore);
      assert.deepEqual(
        lines.map(({ msg, model, status }) => [msg, model, status]),
        asked.map(([method, rest, model, status]) => {
          return [`${method} /models${rest.replace(/\?.*/, '')}`, model, status];
        }),
      );
      assert.deepEqual(
        lines.flatMap(({ code }) => code ?? []),
        ['SERVE_VERSION_NOT_FOUND'],
      );
      assert.ok(lines.every(({ requestId, ms }) => requestId !== undefined && ms !== undefined));
      assert.ok(!server.stderr().includes('in-the-query'));
    });

    await t.test('the exact lines for a loaded model, and for one that is gone', async () => {
      const before = server.stderr().length;
      await manage('?url=m.mjs');
      assert.ok(!server.stderr().slice(before).includes('Model m loaded.'), 'it has no worker yet');
      for (const count of [2, 0, 1]) await manage(`/m?min_worker=${count}&synchronous=true`, 'PUT');
      await manage('/m', 'DELETE');
      const log = (): string => server.stderr().slice(before);
      await eventually(() => log().includes('"Model m unregistered."'), 60_000, log);
      assert.equal(log().match(/"Model \w+ loaded\."/g)?.length, 1, 'once, not by each worker');
    });
    await server.stop();
  },
);

interface Line {
  readonly msg: string;
  readonly model?: string;
  readonly status?: number;
  readonly code?: string;
  readonly requestId?: string;
  readonly ms?: number;
}

/** The lines about requests to the management API. */
function requestLines(server: Server): Line[] {
  return server
    .stderr()
    .split('\n')
    .filter((line) => line.includes(' /models'))
    .map((line) => JSON.parse(line) as Line);
}
