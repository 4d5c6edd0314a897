/** The end of a server in a program: one end, and the same answer to everyone who waits for it. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { serve, type ServeOptions, type ServerHandle } from '../../index.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { eventually } from '../helpers/server.js';

const QUIET = { host: '127.0.0.1', port: 0, logLevel: 'silent', gpus: 'none' } as const;
const LIMIT = { timeout: 240_000 };

/** Killed when the test ends: a server that a failed test left would keep this file from its end. */
async function started(t: TestContext, options: ServeOptions): Promise<ServerHandle> {
  const server = await serve({ ...QUIET, ...options });
  t.after(() => server.kill());
  return server;
}

withOneRuntime(({ app }) => {
  test(
    'kill before the first worker: ready rejects, ended and close resolve with killed',
    LIMIT,
    async (t) => {
      const server = await started(t, { app: app('hangs-in-init') });
      server.kill();
      await assert.rejects(server.ready, { code: 'SERVE_SHUTTING_DOWN' });
      assert.equal((await server.ended).reason, 'killed');
      assert.equal((await server.close()).reason, 'killed');
    },
  );

  test('kill during a drain: close resolves as ended does', LIMIT, async (t) => {
    const server = await started(t, { app: app('never-returns') });
    await server.ready;
    const call = fetch(server.url, { method: 'POST', body: '{"obeys":false}' }).catch(() => null);
    await untilInFlight(server);
    const closed = server.close();
    server.kill();
    assert.deepEqual(await closed, await server.ended);
    assert.equal((await closed).reason, 'killed');
    await call;
  });

  test(
    'a call to an unknown route whose body is whole only after the app is loaded gets 404 and never runs',
    LIMIT,
    async (t) => {
      const server = await started(t, { app: app('echoes') });
      const { hostname, port } = new URL(server.url);
      const socket = connect(Number(port), hostname);
      socket.write('POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{');
      await server.ready;
      socket.write('}');
      let text = '';
      for await (const chunk of socket) text += String(chunk);
      assert.match(text, /^HTTP\/1\.1 404 /);
      await server.close();
    },
  );
});

test(
  'a worker program that cannot be started ends the server politely, not the process',
  LIMIT,
  async (t) => {
    const server = await started(t, { workerCommand: ['/nonexistent/worker'], restartLimit: 0 });
    await assert.rejects(server.ready, { code: 'SERVE_CRASH_LOOP' });
    assert.equal((await server.ended).reason, 'failed');
  },
);

function untilInFlight(server: ServerHandle): Promise<void> {
  return eventually(
    () => server.status().model.inFlight > 0,
    60_000,
    () => 'no call is in flight',
  );
}
