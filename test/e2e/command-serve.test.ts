/** `import { serve } from 'banana-serve'`: the server as a part of another program. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server as NetServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { basename, dirname } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { serve, type ServeOptions, type ServerHandle } from '../../index.js';
import { makeCues } from '../helpers/cues.js';
import { ask, errorOf } from '../helpers/ask.js';
import { holdPort } from '../helpers/held-port.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { ROOT, eventually, fixture, isAlive, type Status } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

async function served(t: TestContext, options: ServeOptions): Promise<ServerHandle> {
  const server = await serve({ host: '127.0.0.1', port: 0, logLevel: 'silent', ...options });
  t.after(() => server.kill());
  return server;
}

withOneRuntime(({ app }) => {
  describe('serve()', LIMIT, () => {
    test('returns a handle: url, ready, status, close', async (t) => {
      const server = await served(t, {
        app: app('echoes'),
        port: await holdPort(),
        workers: 2,
        queueSize: 9,
      });
      assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/);
      const held = ask(server, { a: 1 });
      await server.ready;
      assert.deepEqual((await held).json(), { a: 1 });
      const { state, model } = server.status() as Status;
      assert.deepEqual([state, model.workers.length], ['ready', 2]);
      assert.equal((server.status() as { pid: number }).pid, process.pid, 'the front runs in this process');

      const end = await server.close();
      assert.deepEqual(end, { reason: 'drained', error: null });
      assert.equal(await server.close(), end, 'closing twice is one close');
      assert.deepEqual(await server.ended, end);
      await assert.rejects(fetch(server.url), 'the port is closed');
      for (const { pid } of model.workers) assert.equal(isAlive(pid as number), false);
    });

    test('takes the folder of relative paths and of the config file as an option', async (t) => {
      const server = await served(t, { app: `./${basename(app('echoes'))}`, cwd: dirname(app('echoes')) });
      await server.ready;
      await server.close();
    });

    test('close waits for the calls that were accepted', async (t) => {
      const cues = makeCues(t);
      process.env['CUES'] = cues.env['CUES'];
      const server = await served(t, { app: app('works') });
      const answer = ask(server, { until: 'go' }, { id: 'last' });
      await cues.untilNoted('begun last');
      const closed = server.close();
      const during = await ask(server, {});
      assert.deepEqual([during.status, errorOf(during).code], [503, 'SERVE_SHUTTING_DOWN']);
      assert.equal(during.headers.get('connection'), 'close');
      cues.give('go');
      assert.equal((await answer).status, 200);
      assert.equal((await closed).reason, 'drained');
      assert.ok(cues.notes().includes('shut down'));
    });

    test('kill waits for nothing', async (t) => {
      const cues = makeCues(t);
      process.env['CUES'] = cues.env['CUES'];
      const server = await served(t, { app: app('works') });
      const answer = assert.rejects(ask(server, { until: 'never' }, { id: 'cut' }));
      await cues.untilNoted('begun cut');
      const pid = (server.status() as Status).model.workers[0]?.pid as number;
      server.kill();
      assert.equal((await server.ended).reason, 'killed');
      await answer;
      await untilGone(pid);
    });

    test('ready rejects and the server ends if no worker can start; both have the reason', async (t) => {
      const server = await served(t, { app: app('syntax-error') });
      await assert.rejects(server.ready, { code: 'SERVE_APP_INVALID' });
      const { reason, error } = await server.ended;
      assert.deepEqual([reason, error?.code], ['failed', 'SERVE_APP_INVALID']);
      assert.match(error?.detail ?? '', /syntax-error\.\w+:\d+: syntax error/);
    });
  });

  for (const end of ['close', 'kill'] as const) {
    test(
      `a program that has called ${end}() ends by itself: nothing of the server is left to wait for`,
      LIMIT,
      async (t) => {
        const program = `
      import { serve } from ${JSON.stringify(`${ROOT}dist/index.js`)};
      const server = await serve({ app: ${JSON.stringify(app('echoes'))}, port: 0, logLevel: 'silent' });
      await server.ready;
      await fetch(server.url, { method: 'POST', body: '{}' });
      await server.${end}();
      await server.ended;
      console.log('over');`;
        const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        t.after(() => child.kill('SIGKILL'));
        let printed = '';
        let limit: NodeJS.Timeout | undefined;
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          printed += text;
          limit ??= setTimeout(() => child.kill('SIGKILL'), 20_000); // it has nothing more to do
        });
        const [code] = (await once(child, 'close')) as [number | null];
        clearTimeout(limit);
        assert.deepEqual([code, printed], [0, 'over\n']);
      },
    );
  }
});

describe('serve() of what cannot be served', LIMIT, () => {
  for (const [what, options, message] of [
    [
      'an unknown option',
      { runTimout: '3s' },
      /^serve\(\{ runTimout \}\): there is no such option\. Did you mean runTimeout\?/,
    ],
    [
      'a bad value',
      { workers: 0 },
      /^serve\(\{ workers \}\): 0 is not allowed; give a whole number from 1 to 1024\./,
    ],
    ['a missing app', { app: './nope.mjs' }, /nope\.mjs: no such file/],
  ] as const) {
    test(`rejects ${what} with SERVE_CONFIG, naming it`, async (t) => {
      await assert.rejects(served(t, { app: fixture('echoes.mjs'), ...options }), {
        code: 'SERVE_CONFIG',
        message,
      });
    });
  }

  test("rejects with the system's error if the port is taken", async (t) => {
    const taken = await listenAnywhere(t);
    const { port } = taken.address() as AddressInfo;
    await assert.rejects(served(t, { app: fixture('echoes.mjs'), port }), { code: 'EADDRINUSE' });
  });
});

function listenAnywhere(t: TestContext): Promise<NetServer> {
  const server = createServer();
  t.after(() => server.close());
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

function untilGone(pid: number): Promise<void> {
  return eventually(
    () => !isAlive(pid),
    60_000,
    () => `${pid} lives on`,
  );
}
