/** The published client of major 6, unmodified: it calls routes, and asks again only after the statuses it knows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf, logLines } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { Thrown, startClient } from '../helpers/published-client.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { isAlive } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

interface Answer<T = { readonly input: unknown; readonly pid: number }> {
  readonly json: T;
  readonly meta: { readonly headers: Readonly<Record<string, string>> };
}

/** Points 5, 9 and 10 of conformance.test.ts have a start, a megabyte of text and a full queue. */
withOneRuntime(({ app }) => {
  test('6.2.0: calls, a call whose worker is killed, and calls while the server stops', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--drain-lag', '0ms'];
    const server = await startHere(app('works'), { t, env: cues.env, args });
    const client = await startClient(t, 6, server);

    await t.test('call gets the output, and its own id back', async () => {
      const headers = { 'X-BANANA-REQUEST-ID': 'mine-1' };
      const { json, meta } = await client.ask<Answer>('call', '/', { a: 1 }, headers);
      assert.deepEqual(json.input, { a: 1 });
      assert.equal(meta.headers['x-banana-request-id'], 'mine-1');
      assert.equal(meta.headers['x-request-id'], 'mine-1');
    });

    await t.test(
      'kill -9 of the worker is an error for the client that waits, and the next call works',
      async () => {
        const call = client.ask('call', '/', { until: 'never' }, { 'X-BANANA-REQUEST-ID': 'lost' });
        await cues.untilNoted('begun lost');
        process.kill((await server.status()).model.workers[0]?.pid as number, 'SIGKILL');
        await assert.rejects(call, tells('SERVE_WORKER_LOST'));
        assert.deepEqual((await client.ask<Answer>('call', '/', { next: true })).json.input, { next: true });
        assert.doesNotMatch(client.printed(), /Retrying/, 'a call that ran is not run again');
      },
    );

    await t.test('SIGTERM lets a call end and refuses the next one', async () => {
      const call = client.ask<Answer>('call', '/', { until: 'go on' }, { 'X-BANANA-REQUEST-ID': 'last' });
      await cues.untilNoted('begun last');
      const { model } = await server.status();
      server.process.kill('SIGTERM');
      await server.until(({ state }) => state === 'draining');
      await assert.rejects(client.ask('call', '/', {}, {}, false), tells('SERVE_SHUTTING_DOWN'));
      cues.give('go on');
      assert.deepEqual((await call).json.input, { until: 'go on' });
      assert.deepEqual(await server.ended, { code: 0, signal: null });
      assert.ok(model.workers.every(({ pid }) => !isAlive(pid as number)));
    });
  });

  test('6.2.0: where nothing may wait', LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const args = ['--queue-size', '0', '--access-log', '--log-format', 'json'];
    const server = await startHere(app('works'), { t, env: cues.env, args });
    const client = await startClient(t, 6, server);

    await t.test('a call during a slow init is refused until a worker is ready', async () => {
      const called = client.ask<Answer>('call', '/', { early: true });
      await client.untilPrinted(/(Status code: 503\n.*SERVE_QUEUE_FULL[^]*Retrying\.\.\.[^]*){3}/);
      const refused = await ask(server, {});
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
      assert.deepEqual([errorOf(refused).code, errorOf(refused).source], ['SERVE_QUEUE_FULL', 'server']);
      assert.equal((await server.status()).state, 'starting');
      cues.give('init may end');
      assert.deepEqual((await called).json.input, { early: true });
      assert.equal(cues.notes().filter((note) => note.startsWith('begun')).length, 1, 'ran once');
    });

    await t.test(
      'a call is tried again while the worker is busy, and the access log counts its attempts',
      async () => {
        await client.ask('warmup');
        const running = client.ask<Answer>(
          'call',
          '/',
          { until: 'go on' },
          { 'X-BANANA-REQUEST-ID': 'busy' },
        );
        await cues.untilNoted('begun busy');
        const call = client.ask<Answer>('call', '/', {}, { 'X-BANANA-REQUEST-ID': 'tried-again' });
        await server.untilPrinted('"requestId":"tried-again","attempt":3');
        await assert.rejects(client.ask('call', '/', {}, {}, false), tells('SERVE_QUEUE_FULL'));
        cues.give('go on');
        await Promise.all([running, call]);
        await server.untilPrinted(/"requestId":"tried-again","attempt":\d+,"status":200/);
        const lines = logLines(server);
        const tries = lines.filter(({ requestId }) => requestId === 'tried-again');
        assert.deepEqual(
          tries.map(({ attempt }) => attempt),
          tries.map((_, i) => (i === 0 ? undefined : i + 1)),
        );
        assert.deepEqual(new Set(tries.slice(0, -1).map(({ code }) => code)), new Set(['SERVE_QUEUE_FULL']));
        assert.ok(!lines.some(({ requestId, attempt }) => requestId === 'busy' && attempt !== undefined));
      },
    );
    await server.stop();
  });

  test('6.2.0: the body of an error reaches its user', LIMIT, async (t) => {
    const args = ['--api-key', 'right', '--max-body', '10kb'];
    const server = await startHere(app('ends-as-told'), { t, args });
    const client = await startClient(t, 6, server, 'right');
    await assert.rejects(client.ask('call', '/', { end: 'throws' }), tells('SERVE_INFERENCE_FAILED'));
    await assert.rejects(client.ask('call', '/nowhere', {}), tells('SERVE_NOT_FOUND'));
    await assert.rejects(
      client.ask('call', '/', { text: 'x'.repeat(20_000) }),
      tells('SERVE_BODY_TOO_LARGE'),
    );
    const stranger = { 'X-BANANA-API-KEY': 'wrong' };
    await assert.rejects(client.ask('call', '/', { end: 'list' }, stranger), tells('SERVE_UNAUTHORIZED'));
    assert.deepEqual((await client.ask<Answer<unknown>>('call', '/', { end: 'list' })).json, [
      1,
      'zwei',
      null,
    ]);
    await server.stop();
  });
});

/** The client throws the whole body of an error. */
function tells(code: string): (thrown: unknown) => boolean {
  return (thrown) => {
    assert.ok(thrown instanceof Thrown);
    assert.equal(thrown.kind, 'ClientException', thrown.message);
    assert.equal((JSON.parse(thrown.message) as { error: { code: string } }).error.code, code);
    return true;
  };
}
