/** A front that stood still (SIGSTOP, a laptop's lid): messages that workers sent in time count, however late they are read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { scrape } from '../helpers/scrape.js';
import { eventually, startServer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ app }) => {
  test(
    'calls that ended while the front stood still are answered, though it woke after their limits',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--run-timeout', '8s', '--workers', '3'];
      const server = await startServer(app('notes-its-end'), { t, env: cues.env, args });
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      // The last one is due before the run timeout. The second has an answer that no pipe holds.
      const calls = [
        { kb: 0, headers: {} },
        { kb: 2_000, headers: {} },
        { kb: 0, headers: { 'x-request-timeout-seconds': '7' } },
      ].map(({ kb, headers }) => ask(server, { until: 'go on', kb }, { headers }));
      const all = (line: string): Promise<void> =>
        eventually(
          () => cues.notes().filter((one) => one === line).length === calls.length,
          60_000,
          server.stderr,
        );
      await all('begun');
      server.process.kill('SIGSTOP');
      cues.give('go on');
      await all('ended');
      // Time is what this is about: the limits pass, and the front can report nothing meanwhile. It may then read for as
      // long as it was late, at most a second.
      await delay(9500);
      server.process.kill('SIGCONT');
      const answers = await Promise.all(calls);
      const size = '{"text":""}'.length;
      assert.deepEqual(
        answers.map(({ status, text }) => [status, text.length]),
        [
          [200, size],
          [200, 2_000 * 1024 + size],
          [200, size],
        ],
      );
      await server.stop();
    },
  );
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
