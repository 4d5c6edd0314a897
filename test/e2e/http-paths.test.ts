/** The route that a path names, in each way that a client may write it. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { type Server } from '../helpers/server.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };

async function ask(
  server: Pick<Server, 'url'>,
  method: string,
  target: string,
  headers: readonly string[] = [],
): Promise<string> {
  const json = method === 'POST' ? ['Content-Type: application/json', 'Content-Length: 2'] : [];
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: test', ...json, ...headers];
  const { status, body } = await RawConnection.ask(
    server,
    `${lines.join('\r\n')}\r\n\r\n${json.length > 0 ? '{}' : ''}`,
  );
  return status === 200 ? body : String(status);
}

withOneRuntime(({ app }) => {
  describe('a path', LIMIT, () => {
    let server: Server;
    before(async () => {
      server = await startHere(app('named-paths'), { args: ['--access-log', '--log-format', 'json'] });
      await server.until(({ state }) => state === 'ready');
    });
    after(() => server.stop());

    for (const [target, route] of [
      ['/gr%C3%BC%C3%9Fe/a%20b', '/grüße/a b'],
      ['/gr%c3%bc%c3%9fe/a%20b?x=%zz', '/grüße/a b'],
      ['/%70lain', '/plain'],
      ['/100%25', '/100%'],
      ['http://anywhere/plain?x', '/plain'],
      ['http://anywhere/%70lain', '/plain'],
      ['http://anywhere', '/'],
      ['http://anywhere?x=/plain', '/'],
    ] as const) {
      test(`POST ${target} reaches the route ${route}`, async () => {
        assert.equal(await ask(server, 'POST', target), JSON.stringify({ route }));
      });
    }

    for (const [target, why] of [
      ['/gr%C3%BC%C3%9Fe%2Fa%20b', 'an encoded slash never splits'],
      ['/%2Fplain', 'an encoded slash never splits'],
      ['/%2570lain', 'it is decoded once'],
      ['/x/%2e%2e/plain', 'dots are names'],
      ['/plain%00', 'a zero byte ends nothing'],
      ['/plain%3Fx', 'an encoded question mark begins no query'],
    ] as const) {
      test(`POST ${target} is 404: ${why}`, async () => {
        assert.equal(await ask(server, 'POST', target), '404');
      });
    }

    for (const target of ['/%', '/%zz', '/plain%4', '/%ff', '/%C3/x', 'http://[/', 'http://anywhere/%zz'])
      for (const method of ['GET', 'POST'])
        test(`${method} ${target} is 400, without a stack in the log`, async () => {
          assert.equal(await ask(server, method, target), '400');
          assert.doesNotMatch(server.stderr(), / at /);
        });

    test("the server's own paths are found however they are written", async () => {
      assert.equal(await ask(server, 'GET', '/%6Civez'), '{"state":"alive"}');
      assert.equal(await ask(server, 'GET', '/_k%2Fstatus'), '404');
      assert.match(await ask(server, 'GET', '/%5Fk/status'), /^\{"gpu_available"/);
      assert.equal(await ask(server, 'POST', '/%6Civez'), '405');
      assert.match(await ask(server, 'POST', '/%73tart/v4/'), /"finished":true/);
    });

    test('a WebSocket is opened at its encoded path', async (t) => {
      const client = await openSocket(t, server, '/w%C3%B6rter');
      client.socket.send('hello');
      assert.deepEqual(await client.heard(1), ['hello']);
      await assert.rejects(openSocket(t, server, '/w%C3'), { status: 400 });
    });

    test('errors and the log show the path as it was written, so that no line of theirs breaks', async () => {
      const reply = await RawConnection.ask(server, 'GET /a%0Ab HTTP/1.1\r\nHost: x\r\n\r\n');
      assert.match(reply.body, /There is no GET \/a%0Ab here\./);
      await server.untilPrinted('GET /a%0Ab refused');
      await ask(server, 'POST', '/%70lain');
      await server.untilPrinted(/"POST \/%70lain"/);
    });
  });

  test('no way of writing a path gets around the keys', LIMIT, async (t) => {
    const server = await startHere(app('named-paths'), { t, args: ['--api-key', 'k'] });
    await server.until(({ state }) => state === 'ready');
    for (const target of [
      '/%73tatus',
      '/livez%2F..%2Fstatus',
      '/livez/%2e%2e/status',
      '/%2e%2e/status',
      '/livez%3F/../status',
      '/livez%00/status',
      '/%2573tatus',
      'http://livez/status',
      'http://x/livez/../status',
    ])
      assert.equal(await ask(server, 'GET', target), '401', target);
    for (const target of ['/%70lain', '/livez', '/%6Civez', '/start%2Fv4/', '/st%2561rt/v4/'])
      assert.equal(await ask(server, 'POST', target), '401', target);
    assert.match(
      await ask(server, 'POST', '/st%61rt/v4/'),
      /SERVE_UNAUTHORIZED/,
      'the gateway looks into the body',
    );
    assert.equal(await ask(server, 'GET', '/%6Civez'), '{"state":"alive"}', 'health needs no key');
    await assert.rejects(openSocket(t, server, '/w%C3%B6rter'), { status: 401 });
    const key = ['X-Banana-Api-Key: k'];
    assert.equal(await ask(server, 'POST', '/%70lain', key), '{"route":"/plain"}');
    await server.stop();
  });
});
