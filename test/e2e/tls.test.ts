/** TLS: real certificates, real clients, and what must hold over it as it does without. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { request as requestTls } from 'node:https';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type SecureVersion, type TLSSocket } from 'node:tls';
import { after, before, describe, test, type TestContext } from 'node:test';
import { text } from 'node:stream/consumers';
import { ask, errorOf, logLines } from '../helpers/ask.js';
import { makeCertificate, type Certificate } from '../helpers/certificates.js';
import { connectTo } from '../helpers/connect-to.js';
import { makeCues } from '../helpers/cues.js';
import { holdPort } from '../helpers/held-port.js';
import { needs } from '../helpers/needs.js';
import { RawConnection } from '../helpers/raw-http.js';
import {
  ROOT,
  call,
  fixture,
  runCommand,
  startServer,
  type Server,
  type StartOptions,
} from '../helpers/server.js';
import { UnreadAnswer } from '../helpers/unread.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000, skip: needs('openssl') };
const MB = 1_000_000;
const BYTES = 20 * MB;

// The helpers' clients take any certificate; that the right one is sent is a test of its own.
process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
process.removeAllListeners('warning');

async function startTls(
  t: TestContext | undefined,
  app: string | null,
  { args = [], env = {}, ...options }: StartOptions = {},
  certificate: Certificate = makeCertificate(t ?? { after }),
): Promise<Server> {
  const tls = ['--tls-cert', certificate.certPath, '--tls-key', certificate.keyPath];
  const careful = { ...env, NODE_TLS_REJECT_UNAUTHORIZED: undefined };
  return startServer(app, { ...(t && { t }), ...options, env: careful, args: [...tls, ...args] });
}

const PLAIN = 'This port uses TLS: use an address that begins with https://.';

describe('a key of kind rsa', LIMIT, () => testVersions(shareTls('rsa')));

/** Calls with each version of TLS, of a server that shows its certificate. */
function testVersions(shared: SharedTls): void {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    test(`${version}: a call is answered with that certificate`, async () => {
      const { server, certificate } = shared();
      const { hostname, port, protocol } = new URL(server.url);
      assert.equal(protocol, 'https:', 'the first line names it');
      const trust = {
        ca: certificate.cert,
        rejectUnauthorized: true,
        maxVersion: version,
        agent: false as const,
      };
      const request = requestTls({ hostname, port, path: '/livez', ...trust });
      request.end();
      const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage];
      response.resume();
      assert.equal(response.statusCode, 200);
      assert.equal((request.socket as TLSSocket).getProtocol(), version);
      assert.equal((await ask(server, { hello: 'tls' })).status, 200);
    });
}

const SLOW_HANDSHAKES: readonly (readonly [what: string, bytes: Buffer])[] = [
  ['that sends nothing', Buffer.alloc(0)],
  ['that begins a handshake and stops', Buffer.from([0x16, 0x03, 0x01, 0x02])],
];

describe('a key of kind ec', LIMIT, () => {
  const shared = shareTls('ec');
  testVersions(shared);

  test('older versions of TLS are refused', async () => {
    const { hostname, port } = new URL(shared().server.url);
    const old: { minVersion: SecureVersion; maxVersion: SecureVersion; ciphers: string } = {
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    };
    const socket = connectTls({ host: hostname, port: Number(port), ...old });
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    assert.match(`${error.code} ${error.message}`, /protocol.version/i);
  });

  test('HTTP without TLS is answered, without TLS, that the address is another, and the connection ends', async () => {
    const { server } = shared();
    const plain = { url: server.url.replace('https', 'http') };
    const connection = await RawConnection.open(plain);
    connection.send('GET /livez HTTP/1.1\r\nHost: test\r\n\r\n');
    const reply = await connection.reply();
    assert.deepEqual([reply.status, reply.headers['connection']], [400, 'close']);
    assert.match(reply.body, new RegExp(PLAIN));
    assert.equal(await connection.closed(), 'ended');
    const answer = await call(plain.url, Buffer.alloc(3 * MB));
    assert.equal(errorOf(answer).message, PLAIN);
    const head = await fetch(plain.url, { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [400, '']);
    assert.equal((await ask(server, {})).status, 200, 'others are not disturbed');
  });

  for (const [what, bytes] of SLOW_HANDSHAKES)
    test(`a client ${what} is ended after --header-timeout`, async (t) => {
      const { server } = shared();
      const { hostname, port } = new URL(server.url);
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on('error', () => {});
      t.after(() => socket.destroy());
      await once(socket, 'connect');
      socket.write(bytes);
      await once(socket.resume(), 'close');
      assert.equal((await ask(server, {})).status, 200);
    });

  test('noise, and a client that leaves in its handshake, do not affect other clients', async () => {
    const { server } = shared();
    const { hostname, port } = new URL(server.url);
    const linesBefore = logLines(server).length;
    for (const bytes of [Buffer.alloc(5000, 0xff), Buffer.from([0x16, 0x03]), Buffer.from('\x80\x2e\x01')]) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on('error', () => {});
      await once(socket, 'connect');
      await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
      socket.resetAndDestroy();
    }
    assert.equal((await ask(server, {})).status, 200);
    assert.deepEqual(
      logLines(server)
        .slice(linesBefore)
        .filter(({ level }) => level !== 'info'),
      [],
    );
  });

  test('large bodies and pipelined requests go both ways', async () => {
    const { server } = shared();
    const text = 'é漢🍌'.repeat(500_000);
    const answer = await ask(server, { text });
    assert.equal(answer.json<{ text: string }>().text, text);
    const connection = await RawConnection.open(server);
    for (const n of [1, 2, 3]) connection.post(JSON.stringify({ n }));
    for (const n of [1, 2, 3]) assert.match((await connection.reply()).body, new RegExp(`"n":${n}`));
    connection.destroy();
  });

  test('an upgrade that is not granted is served as a plain request', async () => {
    const connection = await RawConnection.open(shared().server);
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket';
    for (let times = 0; times < 2; times += 1) {
      connection.send(`GET /livez HTTP/1.1\r\nHost: test\r\n${upgrade}\r\n\r\n`);
      assert.equal((await connection.reply()).status, 200);
    }
    connection.destroy();
  });
});

type SharedTls = () => { server: Server; certificate: Certificate };

/** A server of an echo for a group of tests, and its certificate. Handshakes have 5 s. */
function shareTls(kind: 'ec' | 'rsa'): SharedTls {
  let shared: { server: Server; certificate: Certificate } | null = null;
  before(async () => {
    const certificate = makeCertificate({ after }, kind);
    const args = ['--header-timeout', '5s', '--log-format', 'json'];
    shared = { certificate, server: await startTls(undefined, fixture('echoes.mjs'), { args }, certificate) };
  });
  after(() => shared?.server.stop());
  return () => {
    assert.ok(shared !== null, 'the server has started');
    return shared;
  };
}

test('WebSockets', LIMIT, async (t) => {
  const server = await startTls(t, fixture('websockets.mjs'));
  const client = await openSocket(t, server, '/echo');
  const large = Buffer.alloc(3 * MB, 'é');
  client.socket.send('hello');
  client.socket.send(large);
  const [text, bytes] = await client.heard(2);
  assert.equal(text, 'hello');
  assert.ok(large.equals(bytes as Buffer));
  client.socket.close();
  assert.deepEqual(await client.closed, [1005, '']);
  await server.stop();
});

test(
  'answers that are not read are counted with their encrypted bytes, and cut off after --stall-timeout',
  LIMIT,
  async (t) => {
    const args = ['--stall-timeout', '4s', '--access-log', '--log-format', 'json'];
    const server = await startTls(t, fixture('large-answers.mjs'), { args });
    const slow = await UnreadAnswer.ask(t, server, { input: { bytes: BYTES }, id: 'slow' });
    slow.readSlowly(400_000);
    const never = await UnreadAnswer.ask(t, server, { input: { bytes: BYTES }, id: 'never' });
    const { unsent } = await server.until(({ unsent: { clients } }) => clients === 2);
    assert.ok(unsent.bytes > 2 * BYTES, `${unsent.bytes} bytes are held`);
    await server.until(({ replies }) => replies['SERVE_SLOW_READER'] === 1);
    assert.ok((await never.rest()).bytes < BYTES);
    assert.equal((await server.status()).unsent.clients, 1, 'who reads slowly is not cut off');
    assert.ok((await slow.rest(BYTES)).bytes > BYTES);
    await server.untilPrinted('SERVE_SLOW_READER');
    const ends = logLines(server).filter(({ requestId }) => requestId === 'slow' || requestId === 'never');
    assert.deepEqual(
      ends.map(({ requestId, code }) => [requestId, code]),
      [['never', 'SERVE_SLOW_READER'], ...ends.slice(1).map(() => ['slow', undefined])],
    );
    await server.stop();
  },
);

test('one answer of --max-output has room, encrypted, in the least --unsent-bytes', LIMIT, async (t) => {
  const args = ['--unsent-bytes', '1mb', '--max-output', '20mb'];
  const server = await startTls(t, fixture('large-answers.mjs'), { args });
  const reader = await UnreadAnswer.ask(t, server, { input: { bytes: BYTES } });
  await server.until(({ unsent: { clients } }) => clients === 1);
  await UnreadAnswer.ask(t, server, { input: { bytes: BYTES } });
  await server.until(({ replies }) => replies['SERVE_SLOW_READER'] === 1);
  assert.ok((await reader.rest(BYTES)).bytes < BYTES, 'the slowest is cut off for another');
  await server.stop();
});

test('a drain answers what runs, refuses later calls, and ends', LIMIT, async (t) => {
  const cues = makeCues(t);
  const server = await startTls(t, fixture('works.mjs'), { env: cues.env });
  const running = ask(server, { until: 'go on' }, { id: 'running' });
  await cues.untilNoted('begun running');
  server.process.kill('SIGINT');
  await server.until(({ state }) => state === 'draining');
  const refused = await ask(server, {});
  assert.deepEqual([refused.status, refused.headers.get('connection')], [503, 'close']);
  cues.give('go on');
  const answer = await running;
  assert.deepEqual([answer.status, answer.headers.get('connection')], [200, 'close']);
  assert.deepEqual(await server.ended, { code: 0, signal: null });
});

test(
  'the management API and metrics speak TLS where they are named, and other listeners do not',
  LIMIT,
  async (t) => {
    const certificate = makeCertificate(t);
    const store = [
      '--model-store',
      `${ROOT}test/fixtures/apps`,
      '--management-port',
      '0',
      '--metrics-port',
      '0',
    ];
    for (const [listeners, main, management, metrics] of [
      ['management,metrics', 'http:', 'https:', 'https:'],
      ['main,management', 'https:', 'https:', 'http:'],
    ] as const) {
      const server = await startTls(t, null, { args: [...store, '--tls-for', listeners] }, certificate);
      const [api, page] = await Promise.all(
        [/the management API is on (http\S+)/, /metrics are on (http\S+)/].map(async (line) => {
          await server.untilPrinted(line);
          return line.exec(server.stderr())?.[1] ?? '';
        }),
      );
      const protocols = [server.url, api ?? '', page ?? ''].map((url) => new URL(url).protocol);
      assert.deepEqual(protocols, [main, management, metrics]);
      assert.equal((await fetch(`${api}/models`)).status, 200);
      const { cert } = certificate;
      const scraped =
        metrics === 'https:' ? await askTrusting(page ?? '', cert) : await (await fetch(page ?? '')).text();
      assert.match(scraped, /^banana_info\{/m);
      assert.equal((await fetch(`${server.url}/ping`)).status, 200);
      const { hostname, port } = new URL(server.url);
      if (main === 'https:') {
        const answer = await call(server.url.replace('https', 'http'), '{}');
        const inTheirManner = { code: 400, type: 'BadRequestException', message: PLAIN };
        assert.deepEqual(
          answer.json(),
          inTheirManner,
          'without an app, HTTP without TLS is answered like this',
        );
      } else {
        const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false });
        const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
        assert.match(String(error.code), /^ERR_SSL/, 'TLS where HTTP is spoken ends at once');
      }
      await server.stop();
    }
  },
);

/** The body of what a client is answered that trusts this certificate and no other. */
async function askTrusting(url: string, ca: string): Promise<string> {
  const request = requestTls(url, { ca, rejectUnauthorized: true, agent: false });
  request.end();
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage];
  return text(response);
}

test(
  'files that are replaced, and SIGHUP, change nothing until the server is started again',
  LIMIT,
  async (t) => {
    const [before, after] = [makeCertificate(t), makeCertificate(t)];
    const shown = async ({ url }: Server): Promise<string> => {
      const socket = await connectTo(url);
      const { raw } = (socket as TLSSocket).getPeerCertificate();
      socket.destroy();
      return new X509Certificate(raw).fingerprint256;
    };
    const [oldOne, newOne] = [before, after].map(({ cert }) => new X509Certificate(cert).fingerprint256);
    const server = await startTls(t, fixture('echoes.mjs'), {}, before);
    writeFileSync(before.certPath, after.cert);
    writeFileSync(before.keyPath, after.key);
    server.process.kill('SIGHUP');
    assert.equal((await ask(server, {})).status, 200);
    assert.equal(await shown(server), oldOne);
    await server.stop();
    const next = await startTls(t, fixture('echoes.mjs'), {}, before);
    assert.equal(await shown(next), newOne);
    await next.stop();
  },
);

test(
  'one https address in config.properties for inference and management serves both, with a key',
  LIMIT,
  async (t) => {
    const { certPath, keyPath } = makeCertificate(t);
    const folder = mkdtempSync(join(tmpdir(), 'banana-tls-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const address = `https://127.0.0.1:${await holdPort()}`;
    const lines = [
      `inference_address=${address}`,
      `management_address=${address}`,
      `metrics_address=${address}`,
      `certificate_file=${certPath}`,
      `private_key_file=${keyPath}`,
    ];
    writeFileSync(join(folder, 'config.properties'), lines.join('\n'));
    const env = { BANANA_API_KEY: 's3cret', NODE_TLS_REJECT_UNAUTHORIZED: undefined };
    const server = await startServer(null, { t, cwd: folder, env, isAddressGiven: true, key: 's3cret' });
    assert.equal(server.url, address);
    const asked = async (path: string, key?: string): Promise<number> => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const { status, body } = await fetch(address + path, { headers });
      await body?.cancel();
      return status;
    };
    assert.deepEqual(
      [
        await asked('/ping'),
        await asked('/models'),
        await asked('/metrics'),
        await asked('/models', 'wrong'),
      ],
      [200, 401, 401, 401],
    );
    assert.deepEqual([await asked('/models', 's3cret'), await asked('/metrics', 's3cret')], [200, 200]);
    await server.stop();
  },
);

test('a mistake in the files ends the command with exit code 2, before anything starts', LIMIT, async (t) => {
  const { certPath } = makeCertificate(t);
  const args = [fixture('echoes.mjs'), '--port', '0', '--tls-cert', certPath, '--tls-key', certPath];
  const command = runCommand(args, { t });
  assert.equal((await command.ended).code, 2);
  assert.match(
    command.stderr(),
    /^banana-serve: --tls-key \S+: this is a certificate; give its private key here/,
  );
});
