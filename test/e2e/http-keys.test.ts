/** API keys over HTTP: who is let in, who is not, and that no key shows anywhere. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { RawConnection } from '../helpers/raw-http.js';
import { refusalOf, type Refused } from '../helpers/refusals.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually, fixture, runCommand, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const FLAG_KEYS = ['s3cret-old', 's3cret-new'] as const;
const FILE_KEY = 's3cret-file';

withEachRuntime(({ app }) => {
  test('an app does not see the keys in its environment; it sees the other variables', LIMIT, async (t) => {
    const env = { BANANA_API_KEY: 's3cret-env', MINE: 'yes' };
    const other = await startHere(app('tells-environment'), { t, env });
    const answer = await ask(other, {}, { headers: { Authorization: 'Bearer s3cret-env' } });
    const seen = answer.json<{ env: Record<string, string> }>().env;
    assert.deepEqual([seen['MINE'], seen['BANANA_API_KEY']], ['yes', undefined]);
    assert.equal((await ask(other, {})).status, 401);
    await other.stop();
  });
});

withOneRuntime(({ app }) => {
  describe('with API keys', LIMIT, () => {
    const cwd = mkdtempSync(join(tmpdir(), 'banana-http-keys-'));
    let server: Server;
    before(async () => {
      writeFileSync(join(cwd, 'keys.txt'), `# for the nightly job\n${FILE_KEY}\n`);
      const args = [
        '--api-key',
        FLAG_KEYS.join(),
        '--api-key-file',
        'keys.txt',
        '--access-log',
        '--log-format',
        'json',
      ];
      server = await startHere(app('tells-environment'), { args, cwd });
      await server.until(({ state }) => state === 'ready');
    });
    after(async () => {
      await server.stop();
      rmSync(cwd, { recursive: true });
    });

    for (const key of [...FLAG_KEYS, FILE_KEY]) {
      test(`${key} opens calls and /status, in either header`, async () => {
        for (const headers of [{ 'X-BANANA-API-KEY': key }, { Authorization: `Bearer ${key}` }]) {
          assert.equal((await ask(server, {}, { headers })).status, 200);
          assert.equal((await fetch(`${server.url}/status`, { headers })).status, 200);
        }
      });
    }

    const STRANGERS: readonly Record<string, string>[] = [
      {},
      { 'X-BANANA-API-KEY': 's3cret' },
      { 'X-BANANA-API-KEY': FLAG_KEYS.join() },
      { Authorization: `Basic ${FILE_KEY}` },
      { Authorization: 'Bearer wrong' },
      { 'X-BANANA-API-KEY': 'wrong', Authorization: `Bearer ${FILE_KEY}` },
    ];
    for (const headers of STRANGERS) {
      test(`${JSON.stringify(headers)} is 401`, async () => {
        const answer = await ask(server, {}, { headers, id: 'stranger' });
        assert.equal(answer.status, 401);
        assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
        assert.equal(answer.headers.get('server-timing'), 'queue;dur=0, run;dur=0');
        const { code, message, requestId } = errorOf(answer);
        assert.deepEqual([code, requestId], ['SERVE_UNAUTHORIZED', 'stranger']);
        assert.match(message, /X-BANANA-API-KEY: <key>, or as Authorization: Bearer <key>\.$/);
      });
    }

    test('a client without a key learns of no path: everything but health is 401', async () => {
      const requests = [
        'POST /nope',
        'GET /',
        'GET /status',
        'HEAD /status',
        'GET /nope',
        'PUT /',
        'POST /healthcheck',
        'GET /livez/',
      ];
      for (const request of requests) {
        const [method = '', path = ''] = request.split(' ');
        assert.equal((await fetch(`${server.url}${path}`, { method })).status, 401, request);
      }
    });

    test('health needs no key', async () => {
      for (const path of ['/healthcheck', '/livez', '/readyz', '/readyz?probe=1']) {
        for (const method of ['GET', 'HEAD'])
          assert.equal((await fetch(`${server.url}${path}`, { method })).status, 200, `${method} ${path}`);
      }
    });

    test('a client without a key is refused before it sends its body, without 100 Continue', async (t) => {
      const connection = await RawConnection.open(server);
      t.after(() => connection.socket.destroy());
      connection.send(
        'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 50000000\r\n\r\n',
      );
      assert.equal((await connection.reply()).status, 401);
    });

    test('no key shows in the log, in /status or in the list of processes', async () => {
      await ask(server, {}, { headers: { 'X-BANANA-API-KEY': FLAG_KEYS[0] }, id: 'the-last-call' });
      await server.untilPrinted('the-last-call');
      const status = await server.status();
      assert.ok((status.replies['SERVE_UNAUTHORIZED'] ?? 0) > 0);
      const shown = server.stderr() + server.stdout() + JSON.stringify(status);
      assert.match(shown, /"code":"SERVE_UNAUTHORIZED"/);
      assert.doesNotMatch(shown, /s3cret/);
      if (process.platform === 'linux') {
        const commandLine = (): string => readFileSync(`/proc/${server.pid}/cmdline`, 'utf8');
        await eventually(
          () => !commandLine().includes('s3cret'),
          60_000,
          () => 'the flags are in ps',
        );
      }
    });
  });
});

describe('bad API keys', LIMIT, () => {
  const app = fixture('echoes.mjs');
  const BAD: readonly (readonly [what: string, given: Partial<Refused>, says: RegExp])[] = [
    [
      '--api-key s3cret word',
      { flags: { apiKey: 's3cret word' } },
      /^--api-key: this value is not allowed; give one key/,
    ],
    ['an empty --api-key', { flags: { apiKey: '' } }, /--api-key: this value is not allowed/],
    ['BANANA_API_KEY', { env: { BANANA_API_KEY: 's3cret,' } }, /BANANA_API_KEY: this value is not allowed/],
    [
      '--api-key-file',
      { flags: { apiKeyFile: '/nope' } },
      /--api-key-file \/nope: it cannot be read: ENOENT/,
    ],
  ];
  for (const [what, given, says] of BAD)
    test(`${what} is refused, and not shown`, async () => {
      const message = await refusalOf({ app, ...given });
      assert.match(message, says);
      assert.doesNotMatch(message, /s3cret/);
    });

  test('a mistyped flag is refused with exit code 2, and its value not shown', async (t) => {
    const command = runCommand([app, '--api-kye=s3cret'], { t });
    assert.equal((await command.ended).code, 2);
    assert.equal(command.stderr(), "banana-serve: unknown option '--api-kye'\n");
  });
});
