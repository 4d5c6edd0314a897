/** Models from the web, as the management API registers them: what is allowed, what is refused in which words, what stays. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server as NetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { zipOf } from '../helpers/archives.js';
import { makeCertificate } from '../helpers/certificates.js';
import { startManagedCommand, startManagedHere, type ManagedCommand } from '../helpers/managed-command.js';
import { needs } from '../helpers/needs.js';
import { answerName } from '../helpers/own-names.js';
import { startHere } from '../helpers/here.js';
import { call, eventually, runCommand, type StartOptions } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const CODE = 'export const handle = (data) => data === null ? null : data.map(() => "meow");';
const MODEL = await zipOf([
  {
    name: 'MAR-INF/MANIFEST.json',
    content: JSON.stringify({ model: { modelName: 'cats', handler: 'cats:handle' } }),
  },
  { name: 'cats.mjs', content: CODE },
]);
const SUM = createHash('sha256').update(MODEL).digest('hex');
const whole: RequestListener = (_request, response) => response.end(MODEL);

async function open(t: TestContext, server: NetServer, host = '127.0.0.1'): Promise<string> {
  server.listen(0, host);
  await once(server, 'listening');
  t.after(() => server.close());
  return `${host}:${(server.address() as AddressInfo).port}`;
}

interface Downloader extends ManagedCommand {
  /** The files below the server's temp folder. */
  readonly files: () => string[];
  /** Registers this url, and resolves to the answer. */
  readonly register: (url: string, more?: string) => Promise<string>;
}

async function startDownloader(
  t: TestContext,
  allowed: string,
  env: Readonly<Record<string, string>> | null = null,
  options: StartOptions = {},
): Promise<Downloader> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-downloads-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [temp, store] = [join(folder, 'temp'), join(folder, 'store')];
  mkdirSync(temp);
  mkdirSync(store);
  const args = ['--allowed-urls', allowed, '--access-log', '--drain-lag', '0s'];
  // The variables are those that Node reads at its start.
  const start = env === null ? startManagedHere : startManagedCommand;
  const command = await start(t, { ...options, args, env: { ...env, TMPDIR: temp } }, store);
  const files = (): string[] => {
    try {
      const entries = readdirSync(temp, { recursive: true, withFileTypes: true });
      return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    } catch {
      return ['in a folder that was removed while it was read'];
    }
  };
  const register = (url: string, more = ''): Promise<string> =>
    command.management.said(`POST /models?url=${encodeURIComponent(url)}${more}`);
  return { ...command, files, register };
}

test(
  'a model of an address that is allowed is served, and nothing of its address is shown that may be secret',
  LIMIT,
  async (t) => {
    const address = await open(t, createServer(whole));
    const url = `http://${address}/zoo/felines.mar`;
    const { server, management, files, register } = await startDownloader(t, `http://${address}/zoo/`);
    const secret = `${url}?token=s3cret#sha256=${SUM}`;
    assert.equal(await register(secret, '&initial_workers=1'), '200 Workers scaled');
    assert.equal((await management.infer('cats')).text, 'meow');
    const described = await management.manage('GET /models/cats');
    assert.equal(described.json<{ modelUrl: string }>().modelUrl, url);
    assert.ok(!files().some((name) => name.endsWith('.mar')), 'the archive itself is not kept');
    assert.equal(await register(secret), '409 Model cats is already registered.');
    assert.ok(!server.stderr().includes('s3cret'), server.stderr());
    assert.equal(await management.said('DELETE /models/cats'), '200 Model "cats" unregistered');
    await eventually(
      () => files().length === 0,
      60_000,
      () => files().join(),
    );
    await server.stop();
  },
);

test(
  'four downloads run at once, 32 wait for their turn, and further ones are refused with Retry-After',
  LIMIT,
  async (t) => {
    const held: (() => void)[] = [];
    let [isHeld, running, most] = [true, 0, 0];
    const site = await open(
      t,
      createServer((_request, response) => {
        running += 1;
        most = Math.max(most, running);
        const answer = (): void => {
          running -= 1;
          response.end(MODEL);
        };
        if (isHeld) held.push(answer);
        else answer();
      }),
    );
    const url = `http://${site}/cats.mar`;
    const { server, management, files } = await startDownloader(t, `http://${site}/`);
    const refused: string[] = [];
    const all = Array.from({ length: 40 }, async (_, i) => {
      const asked = `POST /models?url=${encodeURIComponent(url)}&model_name=cats${i}`;
      const { status, headers, text } = await management.manage(asked);
      if (status === 503) refused.push(`${headers.get('retry-after')} ${text}`);
      return status;
    });
    await eventually(
      () => refused.length === 4 && held.length === 4,
      60_000,
      () => `${refused.length} are refused, ${held.length} run`,
    );
    for (const said of refused) {
      assert.match(said, /^30 /, 'Retry-After');
      assert.ok(said.includes(`from: ${url}: 4 downloads are running and 32 waiting; try again later`), said);
    }
    isHeld = false;
    for (const answer of held) answer();
    const answers = await Promise.all(all);
    assert.equal(answers.filter((status) => status === 200).length, 36, answers.join());
    assert.equal(most, 4);
    assert.equal(
      (await management.manage('GET /models?limit=100')).json<{ models: unknown[] }>().models.length,
      36,
    );
    assert.ok(!files().some((name) => name.endsWith('.mar')));
    await server.stop();
  },
);

test(
  'a url that is missing, malformed, not allowed or unreachable is refused in this order, and leaves nothing',
  LIMIT,
  async (t) => {
    const inside = await open(t, createServer(whole), '127.0.0.2');
    const address = await open(
      t,
      createServer((request, response) => {
        if (request.url === '/moved') response.writeHead(302, { Location: `http://${inside}/m.mar` });
        else response.statusCode = request.url === '/m.mar' ? 200 : 404;
        response.end(MODEL);
      }),
    );
    const site = `http://${address}`;
    const { server, files, register } = await startDownloader(t, `${site}, .*`);
    await server.untilPrinted('--allowed-urls: .*: begin it with https://');
    const failed = 'Failed to download model from:';
    const rows: readonly (readonly [url: string, said: string])[] = [
      ['', '400 Parameter url is required.'],
      ['http://[bad', '404 Invalid model url: http://[bad'],
      [`http://${inside}/m.mar`, `400 ${failed} http://${inside}/m.mar: not allowed (allowed_urls)`],
      ['https://evil.example/m.mar', `400 ${failed} https://evil.example/m.mar: not allowed (allowed_urls)`],
      [`http://u:p@${address}/m.mar`, `400 ${failed} ${site}/m.mar: not allowed (allowed_urls)`],
      [`${site}/gone.mar`, `400 ${failed} ${site}/gone.mar, code: 404`],
      [
        `${site}/moved`,
        `400 ${failed} ${site}/moved: redirected to http://${inside}/m.mar, which is not allowed (allowed_urls)`,
      ],
      [
        `${site}/m.mar#sha256=${'0'.repeat(64)}`,
        `400 ${failed} ${site}/m.mar: the file has the SHA-256 checksum ${SUM}, not the one that was asked for`,
      ],
    ];
    for (const [url, said] of rows) assert.equal(await register(url), said);
    assert.deepEqual(files(), []);
    await server.stop();
  },
);

test(
  'a name that changes its answer leads nowhere else: it is asked for once, and must not lead to a special address',
  { ...LIMIT, skip: needs('unshare', 'root') },
  async (t) => {
    const askedAt: (string | undefined)[] = [];
    const site = createServer(({ socket }, response) => {
      askedAt.push(socket.localAddress);
      response.end(MODEL);
    });
    const [, port] = (await open(t, site, '0.0.0.0')).split(':');
    const next = ['127.0.0.1', '127.0.0.2', '169.254.169.254'];
    let questions = 0;
    const command = await answerName(t, 'models.banana.test', () => {
      questions += 1;
      return next[questions - 1] ?? '127.0.0.3';
    });
    const url = `http://models.banana.test:${port}/cats.mar`;
    const { server, files, register } = await startDownloader(
      t,
      `http://models.banana.test:`,
      {},
      { command },
    );
    assert.equal(await register(url), '200 Model "cats" registered');
    assert.deepEqual([questions, askedAt], [1, ['127.0.0.1']], 'the second answer was not asked for');
    assert.equal(await register(url, '&model_name=again'), '200 Model "again" registered');
    assert.equal(
      await register(url, '&model_name=metadata'),
      `400 Failed to download model from: ${url}: models.banana.test resolves to 169.254.169.254, which a host name may not resolve to; if that is intended, put the address itself into allowed_urls`,
    );
    assert.deepEqual([questions, askedAt], [3, ['127.0.0.1', '127.0.0.2']]);
    assert.ok(!files().some((name) => name.endsWith('.mar')));
    await server.stop();
  },
);

test('a download whose client has left is called off, and leaves nothing', LIMIT, async (t) => {
  let isLeft = false;
  const site = createServer((_request, response) => {
    response.write(MODEL.subarray(0, 100));
    response.once('close', () => (isLeft = true));
  });
  const asked = once(site, 'request');
  const address = await open(t, site);
  const { server, management, files } = await startDownloader(t, `http://${address}`);
  const client = new AbortController();
  const url = encodeURIComponent(`http://${address}/m.mar`);
  const gone = assert.rejects(management.manage(`POST /models?url=${url}`, { signal: client.signal }));
  await asked;
  await eventually(
    () => files().length === 1,
    60_000,
    () => 'it has not begun',
  );
  client.abort();
  await gone;
  await eventually(
    () => isLeft && files().length === 0,
    60_000,
    () => files().join(),
  );
  await server.stop();
});

test('a server that ends in the middle of a download leaves nothing', LIMIT, async (t) => {
  const site = createServer((_request, response) => response.write(MODEL.subarray(0, 100)));
  const address = await open(t, site);
  t.after(() => site.closeAllConnections());
  const { server, management, files } = await startDownloader(t, `http://${address}`);
  const url = encodeURIComponent(`http://${address}/m.mar`);
  const answer = management.manage(`POST /models?url=${url}`).catch(() => null);
  await eventually(
    () => files().length === 1,
    60_000,
    () => 'it has not begun',
  );
  server.process.kill('SIGINT');
  await server.ended;
  await answer;
  assert.deepEqual(files(), []);
});

test(
  'a server that is asked to stop while it downloads its first models ends, and leaves nothing',
  LIMIT,
  async (t) => {
    let isAsked = false;
    const site = createServer((_request, response) => {
      response.write(MODEL.subarray(0, 100));
      isAsked = true;
    });
    const address = await open(t, site);
    t.after(() => site.closeAllConnections());
    const temp = mkdtempSync(join(tmpdir(), 'banana-downloads-'));
    t.after(() => rmSync(temp, { recursive: true, force: true }));
    const url = `http://${address}/m.mar`;
    const args = ['--models', `${url},${url}?again`, '--allowed-urls', url, '--port', '0'];
    const command = runCommand(args, { t, env: { TMPDIR: temp } });
    await eventually(
      () => isAsked,
      60_000,
      () => command.stderr(),
    );
    command.process.kill('SIGTERM');
    assert.deepEqual(await command.ended, { code: 0, signal: null });
    assert.equal(command.stderr(), 'banana-serve: stopped before it had started.\n');
    assert.deepEqual(readdirSync(temp), []);
  },
);

test(
  'a server may begin with models from the web, without a store; one that does not come is left out',
  LIMIT,
  async (t) => {
    const site = createServer((request, response) => {
      if (request.url?.startsWith('/gone') === true) response.statusCode = 404;
      response.end(MODEL);
    });
    const address = await open(t, site);
    const wanted = `here=http://${address}/m.mar#sha256=${SUM},http://${address}/gone.mar?token=s3cret`;
    const args = ['--models', wanted, '--allowed-urls', `http://${address}`, '--management-port', '0'];
    const server = await startHere(null, { t, args });
    await server.until(({ state }) => state === 'ready');
    assert.equal((await call(`${server.url}/predictions/here`, '1')).text, 'meow');
    const said = `http://${address}/gone.mar: Failed to download model from: http://${address}/gone.mar, code: 404; it is left out`;
    await server.untilPrinted(said);
    assert.ok(!server.stderr().includes('s3cret'), server.stderr());
    await server.stop();
  },
);

test(
  'https, from a server whose certificate Node trusts',
  { ...LIMIT, skip: needs('openssl') },
  async (t) => {
    const { cert, key, certPath } = makeCertificate(t);
    const address = await open(t, createTlsServer({ cert, key }, whole));
    const strict = await startDownloader(t, `https://${address}`);
    assert.match(await strict.register(`https://${address}/m.mar`), /^400 .*: self-signed certificate/);
    await strict.server.stop();
    const trusting = await startDownloader(t, `https://${address}`, { NODE_EXTRA_CA_CERTS: certPath });
    assert.equal(await trusting.register(`https://${address}/m.mar`), '200 Model "cats" registered');
    await trusting.server.stop();
  },
);
