/** Health and status: the truth, at once, whatever the workers are doing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually, isAlive } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** Status and exact text of a GET. */
async function get(
  { url }: { readonly url: string },
  path: string,
): Promise<readonly [status: number, text: string]> {
  const response = await fetch(`${url}${path}`);
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  return [response.status, await response.text()];
}

withOneRuntime(({ app }) => {
  test(
    'while init runs health is starting and calls are held, or 404 once the routes are known; then healthy, and the calls are answered',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const server = await startHere(app('works'), { t, env: cues.env });
      assert.deepEqual(await get(server, '/healthcheck'), [503, '{"state":"starting","gpu":false}']);
      assert.deepEqual(await get(server, '/readyz'), [503, '{"state":"starting"}']);
      assert.deepEqual(await get(server, '/livez'), [200, '{"state":"alive"}']);
      const nowhere = await fetch(`${server.url}/nope`, { method: 'POST' });
      assert.equal(nowhere.status, 404, 'the routes are known before init ends');
      assert.deepEqual(await get(server, '/readyz'), [503, '{"state":"starting"}']);
      const held = ask(server, { a: 1 });
      await server.until(({ model, state }) => model.queue.waiting === 1 && state === 'starting');
      cues.give('init may end');
      assert.equal((await held).status, 200);
      assert.deepEqual(await get(server, '/healthcheck'), [200, '{"state":"healthy","gpu":false}']);
      assert.deepEqual(await get(server, '/readyz'), [200, '{"state":"ready"}']);
      await server.stop();
    },
  );

  test(
    'health, status and errors are answered at once while every worker is deep in synchronous code',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--workers', '2'];
      const server = await startHere(app('blocks-thread'), { t, args, env: cues.env });
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      const calls = [1, 2].map(() => ask(server, { until: 'go' }));
      await eventually(
        () => cues.notes().length === 2,
        60_000,
        () => 'both workers are blocked',
      );
      for (let i = 0; i < 20; i += 1) {
        assert.deepEqual(await get(server, '/healthcheck'), [200, '{"state":"healthy","gpu":false}']);
        assert.equal((await get(server, '/readyz'))[0], 200);
        assert.equal((await get(server, '/livez'))[0], 200);
        assert.equal((await fetch(`${server.url}/nope`)).status, 404);
        const { model } = await server.status();
        assert.deepEqual(
          model.workers.map(({ state, held }) => [state, held]),
          [
            ['busy', 1],
            ['busy', 1],
          ],
        );
      }
      cues.give('go');
      for (const call of calls) assert.equal((await call).status, 200);
      await server.stop();
    },
  );

  test('/status shows what every worker is, does and did', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(app('works'), { t, args: ['--workers', '2'], env: cues.env });
    await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
    for (let i = 0; i < 4; i += 1) await ask(server, {});
    const status = (await (await fetch(`${server.url}/status`)).json()) as Record<string, unknown> & {
      model: Record<string, unknown> & { workers: Record<string, unknown>[] };
    };
    assert.equal(status['state'], 'ready');
    assert.equal(status['pid'], process.pid);
    assert.deepEqual(status['replies'], { ok: 4 });
    assert.ok((status['uptimeMs'] as number) > 0);
    const { model } = status;
    assert.equal(model['name'], 'works');
    assert.deepEqual(model['routes'], ['/']);
    assert.deepEqual(model['queue'], {
      waiting: 0,
      arriving: 0,
      bytes: 0,
      maxCalls: 1024,
      maxBytes: 512 * 1024 ** 2,
    });
    assert.equal(model.workers.length, 2);
    let calls = 0;
    for (const [index, worker] of model.workers.entries()) {
      const { pid, uptimeMs, initMs, calls: own, ...rest } = worker;
      assert.ok(isAlive(pid as number));
      assert.ok((uptimeMs as number) >= (initMs as number) && (initMs as number) >= 0);
      calls += own as number;
      assert.deepEqual(rest, {
        index,
        state: 'idle',
        standby: false,
        device: 'cpu',
        held: 0,
        restarts: 0,
        next: null,
        retryInMs: null,
        waitsFor: null,
        lastExit: null,
      });
    }
    assert.equal(calls, 4);
    await server.stop();
  });

  test(
    'when the last worker is dead and no start succeeds, health is failing and calls are refused',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('intact');
      const args = ['--restart-limit', '0'];
      const server = await startHere(app('throws-in-init'), { t, args, env: cues.env });
      const { model } = await server.until(({ state }) => state === 'ready');
      const pid = model.workers[0]?.pid as number;
      cues.give('broken');
      process.kill(pid, 'SIGKILL');
      await server.until(({ state }) => state === 'failing');
      assert.deepEqual(await get(server, '/healthcheck'), [503, '{"state":"failing","gpu":false}']);
      const [status, text] = await get(server, '/readyz');
      assert.equal(status, 503);
      assert.match(text, /^\{"state":"failing","reason":"No worker of this model can start: /);
      assert.deepEqual(await get(server, '/livez'), [200, '{"state":"alive"}']);
      assert.deepEqual(await get(server, '/health-check'), [200, '{"status":"DEFUNCT"}']);
      const refused = await ask(server, {});
      assert.equal(refused.status, 503);
      assert.ok(Number(refused.headers.get('retry-after')) >= 1);
      assert.match(refused.text, /SERVE_NOT_READY/);
    },
  );
});
