/** SIGTERM: the server answers the calls that it has accepted, refuses new ones, and exits with 0. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { eventually, fixture, isAlive, startServer } from '../helpers/server.js';

test('a server that gets SIGTERM', { timeout: 240_000 }, async (t) => {
  const cues = makeCues(t);
  const args = ['--drain-lag', '0s'];
  const server = await startServer(fixture('works.mjs'), { t, env: cues.env, args });
  const running = ask(server, { until: 'go' }, { id: 'running' });
  await cues.untilNoted('begun running');
  const waiting = ask(server, {}, { id: 'waiting' });
  const { model } = await server.until((status) => status.model.queue.waiting === 1);
  const worker = model.workers[0]?.pid as number;
  server.process.kill('SIGTERM');
  await server.until(({ state }) => state === 'draining');

  await t.test('is alive and not ready', async () => {
    assert.equal((await fetch(`${server.url}/readyz`)).status, 503);
    assert.equal((await fetch(`${server.url}/livez`)).status, 200);
  });

  await t.test('answers new calls with 503 SERVE_SHUTTING_DOWN, and closes their connections', async () => {
    const refused = await ask(server, {}, { id: 'refused' });
    assert.deepEqual([refused.status, errorOf(refused).code], [503, 'SERVE_SHUTTING_DOWN']);
    assert.equal(refused.headers.get('connection'), 'close');
    assert.ok(refused.headers.has('retry-after'));
  });

  await t.test('answers the call that runs and the one that waits', async () => {
    cues.give('go');
    for (const answer of await Promise.all([running, waiting])) assert.equal(answer.status, 200, answer.text);
  });

  await t.test('runs the shutdown of the app, exits with 0 and leaves no worker', async () => {
    assert.deepEqual(await server.ended, { code: 0, signal: null });
    assert.deepEqual(cues.notes(), ['begun running', 'begun waiting', 'shut down']);
    await eventually(
      () => !isAlive(worker),
      60_000,
      () => `worker ${worker} is alive`,
    );
  });
});
