/** The published client of major 6, unmodified: it calls routes, and asks again only after the statuses it knows. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, errorOf, logLines } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { Thrown, startClient } from '../helpers/published-client.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { isAlive, startServer } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

interface Answer<T = { readonly input: unknown; readonly pid: number }> {
  readonly json: T;
  readonly meta: { readonly headers: Readonly<Record<string, string>> };
}

withOneRuntime(({ app }) => {
  describe('on one server', () => {
    const shared = shareServer(app('works'));

    test('6.2.0: call gets the output, and its own id back', LIMIT, async (t) => {
      const client = await startClient(t, 6, shared.server);
      const headers = { 'X-BANANA-REQUEST-ID': 'mine-1' };
      const { json, meta } = await client.ask<Answer>('call', '/', { a: 1 }, headers);
      assert.deepEqual(json.input, { a: 1 });
      assert.equal(meta.headers['x-banana-request-id'], 'mine-1');
      assert.equal(meta.headers['x-request-id'], 'mine-1');
    });

    test('6.2.0: a megabyte of non-ASCII text goes there and back', LIMIT, async (t) => {
      const client = await startClient(t, 6, shared.server);
      const inputs = { text: 'Grüße, 世界 🍌 \u2028'.repeat(50_000) };
      const { json } = await client.ask<Answer>('call', '/', inputs);
      assert.ok(Buffer.byteLength(inputs.text) > 1e6);
      assert.ok(JSON.stringify(json.input) === JSON.stringify(inputs), 'not a character is different');
    });
  });

  test('6.2.0: warmup and call are held during a slow init, and never asked twice', LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const server = await startServer(app('works'), { t, env: cues.env });
    const client = await startClient(t, 6, server);
    const answers = Promise.all([
      client.ask<Answer<unknown>>('warmup'),
      client.ask<Answer>('call', '/', { early: true }),
    ]);
    await server.until(({ model }) => model.queue.waiting === 1);
    cues.give('init may end');
    const [warm, called] = await answers;
    assert.deepEqual(warm.json, { warm: true });
    assert.deepEqual(called.json.input, { early: true });
    assert.doesNotMatch(client.printed(), /Retrying|Status code/);
    await server.stop();
  });

  test(
    '6.2.0: where nothing may wait, a call during a slow init is refused until a worker is ready',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const server = await startServer(app('works'), { t, env: cues.env, args: ['--queue-size', '0'] });
      const client = await startClient(t, 6, server);
      const called = client.ask<Answer>('call', '/', { early: true });
      await client.untilPrinted(/(Status code: 503\n.*SERVE_QUEUE_FULL[^]*Retrying\.\.\.[^]*){3}/);
      const refused = await ask(server, {});
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
      assert.deepEqual([errorOf(refused).code, errorOf(refused).source], ['SERVE_QUEUE_FULL', 'server']);
      assert.equal((await server.status()).state, 'starting');
      cues.give('init may end');
      assert.deepEqual((await called).json.input, { early: true });
      assert.equal(cues.notes().filter((note) => note.startsWith('begun')).length, 1, 'ran once');
      await server.stop();
    },
  );

  test(
    '6.2.0: of two calls during a slow init and one place to wait, both are served in the end',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const server = await startServer(app('works'), { t, env: cues.env, args: ['--queue-size', '1'] });
      const client = await startClient(t, 6, server);
      const held = client.ask<Answer>('call', '/', { n: 1 });
      await server.until(({ model }) => model.queue.waiting === 1);
      assert.doesNotMatch(client.printed(), /Retrying/);
      const refused = client.ask<Answer>('call', '/', { n: 2 });
      await client.untilPrinted(/Status code: 503\n.*SERVE_QUEUE_FULL[^]*Retrying\.\.\./);
      assert.equal((await server.status()).state, 'starting');
      cues.give('init may end');
      assert.deepEqual((await held).json.input, { n: 1 });
      assert.deepEqual((await refused).json.input, { n: 2 });
      await server.stop();
    },
  );

  describe('on one server without a queue', LIMIT, () => {
    const shared = shareServer(app('works'), {
      args: ['--queue-size', '0', '--access-log', '--log-format', 'json'],
    });

    test('6.2.0: the access log counts the attempts of a call that is tried again', LIMIT, async (t) => {
      const { server, cues } = shared;
      const client = await startClient(t, 6, server);
      await client.ask('warmup');
      const running = client.ask<Answer>('call', '/', { until: 'go on' });
      await cues.untilNoted(/^begun /);
      const call = client.ask<Answer>('call', '/', {}, { 'X-BANANA-REQUEST-ID': 'tried-again' });
      await server.untilPrinted('"requestId":"tried-again","attempt":3');
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
      assert.equal(
        lines.filter(({ attempt }) => attempt !== undefined).length,
        tries.length - 1,
        'of no other',
      );
    });

    test('6.2.0: after a full queue it asks again until it is served', LIMIT, async (t) => {
      const { server, cues } = shared;
      const client = await startClient(t, 6, server);
      await client.ask('warmup');
      const running = client.ask<Answer>('call', '/', { until: 'go on' });
      await cues.untilNoted(/^begun /);
      const refused = client.ask<Answer>('call', '/', { second: true });
      await client.untilPrinted('Retrying...');
      assert.match(client.printed(), /Status code: 503\n.*SERVE_QUEUE_FULL/);
      cues.give('go on');
      assert.deepEqual((await running).json.input, { until: 'go on' });
      assert.deepEqual((await refused).json.input, { second: true });
      const impatient = { until: 'go on again' };
      const again = client.ask<Answer>('call', '/', impatient, { 'X-BANANA-REQUEST-ID': 'again' });
      await cues.untilNoted('begun again');
      await assert.rejects(client.ask('call', '/', {}, {}, false), tells('SERVE_QUEUE_FULL'));
      cues.give('go on again');
      assert.deepEqual((await again).json.input, impatient);
    });
  });

  test('6.2.0: the body of an error reaches its user', LIMIT, async (t) => {
    const args = ['--api-key', 'right', '--max-body', '10kb'];
    const server = await startServer(app('ends-as-told'), { t, args, key: 'right' });
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

  test(
    '6.2.0: kill -9 of the worker is an error for the client that waits, and the next call works',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('works'), { t, env: cues.env, expectedRestarts: 1 });
      const client = await startClient(t, 6, server);
      const call = client.ask('call', '/', { until: 'never' });
      await cues.untilNoted(/^begun /);
      process.kill((await server.status()).model.workers[0]?.pid as number, 'SIGKILL');
      await assert.rejects(call, tells('SERVE_WORKER_LOST'));
      assert.deepEqual((await client.ask<Answer>('call', '/', { next: true })).json.input, { next: true });
      assert.doesNotMatch(client.printed(), /Retrying/, 'a call that ran is not run again');
      await server.stop();
    },
  );

  test('6.2.0: SIGTERM lets a call end and refuses the next one', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startServer(app('works'), { t, env: cues.env, args: ['--drain-lag', '0ms'] });
    const client = await startClient(t, 6, server);
    const call = client.ask<Answer>('call', '/', { until: 'go on' });
    await cues.untilNoted(/^begun /);
    const { model } = await server.status();
    server.process.kill('SIGTERM');
    await server.until(({ state }) => state === 'draining');
    await assert.rejects(client.ask('call', '/', {}, {}, false), tells('SERVE_SHUTTING_DOWN'));
    cues.give('go on');
    assert.deepEqual((await call).json.input, { until: 'go on' });
    assert.deepEqual(await server.ended, { code: 0, signal: null });
    assert.ok(model.workers.every(({ pid, restarts }) => restarts === 0 && !isAlive(pid as number)));
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
