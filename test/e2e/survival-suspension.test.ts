/** A front that stood still (SIGSTOP, a laptop's lid): messages that workers sent in time count, however late they are read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { scrape } from '../helpers/scrape.js';
import { startServer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ app }) => {
  // The worker must get to the end of its call within the limit, on a slow machine too.
  for (const [what, kb, limitS, args, headers] of [
    ['--run-timeout', 0, 4, ['--run-timeout', '4s'], {}],
    ['--run-timeout, with an answer that no pipe holds', 2_000, 8, ['--run-timeout', '8s'], {}],
    ["the client's deadline", 0, 4, [], { 'x-request-timeout-seconds': '4' }],
  ] as const) {
    test(
      `a call that ended while the front stood still is answered, though it woke after ${what}`,
      LIMIT,
      async (t) => {
        const cues = makeCues(t);
        const server = await startServer(app('notes-its-end'), { t, env: cues.env, args });
        await server.until(({ state }) => state === 'ready');
        const call = ask(server, { until: 'go on', kb }, { headers });
        await cues.untilNoted('begun');
        server.process.kill('SIGSTOP');
        cues.give('go on');
        await cues.untilNoted('ended');
        // Time is what this is about: the limit passes, and the front can report nothing meanwhile. It may then read
        // for as long as it was late, at most a second.
        await delay(limitS * 1000 + 1500);
        server.process.kill('SIGCONT');
        const answer = await call;
        assert.deepEqual([answer.status, answer.text.length], [200, kb * 1024 + '{"text":""}'.length]);
        await server.stop();
      },
    );
  }
});

withOneRuntime(({ app }) => {
  test(
    'an idle worker that is frozen is not ready until it continues; at a stop it is killed within seconds',
    { ...LIMIT, skip: process.platform !== 'linux' },
    async (t) => {
      const server = await startServer(app('works'), { t, args: ['--metrics', '--drain-lag', '0'] });
      const { model } = await server.until(({ state }) => state === 'ready');
      const pid = model.workers[0]?.pid as number;
      process.kill(pid, 'SIGSTOP');
      const { state } = await server.until(({ model }) => model.workers[0]?.state === 'frozen');
      assert.equal(state, 'unhealthy');
      assert.equal((await fetch(`${server.url}/readyz`)).status, 503);
      assert.equal((await scrape(server.url)).sum('banana_workers', { state: 'frozen' }), 1);
      process.kill(pid, 'SIGCONT');
      await server.until(({ state, model }) => state === 'ready' && model.workers[0]?.state === 'idle');
      assert.equal((await fetch(`${server.url}/readyz`)).status, 200);

      process.kill(pid, 'SIGSTOP');
      await server.stop();
      const stderr = server.stderr();
      assert.match(stderr, /worker 0 is frozen by a signal.*\n(.*\n)*.*worker 0 continues/);
      assert.match(stderr, /worker 0 has stopped \(killed by the server: frozen when asked to stop\)/);
    },
  );
});
