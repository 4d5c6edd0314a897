/** The conformance checklist of the Banana and Potassium contract, by the numbers of its points. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test, type TestContext } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { startClient } from '../helpers/published-client.js';
import { frontHeapBytes, HEAP_ENV } from '../helpers/front-heap.js';
import { deadUrl } from '../helpers/held-port.js';
import { askAtOnce } from '../helpers/pipeline.js';
import { endOf, post, potassiumStatus, startJob, untilPotassium } from '../helpers/potassium.js';
import { withEachRuntime, withOneRuntime, type Language } from '../helpers/runtimes.js';
import { eventually, type Server } from '../helpers/server.js';
import { startHere } from '../helpers/here.js';
import { shareServer } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const JSON_TYPE = { 'content-type': 'application/json' };

/** Calls after which the front has the memory that it needs. */
const WARM: Readonly<Record<Language, number>> = { TypeScript: 2000, Python: 100 };

/** The contract's number with one language: the memory is the front's, which knows none. */
const MANY: Readonly<Record<Language, number>> = { TypeScript: 10_000, Python: 500 };

/** At most so much more memory may be held after them: 500 bytes a call. */
const GROWN_BYTES = 5_000_000;

/** Calls that one connection sends in one write, before it closes. */
const AT_ONCE = 10;

withEachRuntime(({ language, app, greeting, potassium }) => {
  test('1: five cold calls of the seed exercise: one init, five answers, in turn', LIMIT, async (t) => {
    const env = { GREETING_INIT_MS: '1000', GREETING_INIT_S: '1' };
    const server = await startHere(greeting(), { t, env });
    const calls = Array.from({ length: 5 }, () => fetch(server.url, { method: 'POST' }));
    for (const reply of await Promise.all(calls)) {
      assert.equal(reply.status, 200);
      assert.deepEqual(await reply.json(), { greeting: 'hello world' });
    }
    await server.stop();
    const lines = server.stdout().split('\n').slice(0, -1);
    assert.deepEqual(lines, ['hello', ...Array<string>(5).fill('hello world')]);
  });

  describe('one server', LIMIT, () => {
    const shared = shareServer(potassium(), { expectedRestarts: 1, env: HEAP_ENV });

    test('2: every kind of request has its status', async () => {
      const { server } = shared;
      const rows: readonly (readonly [
        method: string,
        path: string,
        body: string | null,
        type: string,
        status: number,
      ])[] = [
        ['POST', '/', '{}', 'application/json', 200],
        ['POST', '/answer', '"a status"', 'application/json', 201],
        ['POST', '/answer', '"bytes"', 'application/json', 200],
        ['POST', '/answer', '"chunks"', 'application/json', 200],
        ['POST', '/later', '{}', 'application/json', 200],
        ['POST', '/', '{', 'application/json', 400],
        ['POST', '/', null, 'application/json', 400],
        ['POST', '/', '{}', 'text/plain', 400],
        ['POST', '/', 'null', 'application/ld+json', 200],
        ['POST', '/work/', '{}', 'application/json', 404],
        ['GET', '/', null, '', 405],
        ['PUT', '/later', '{}', 'application/json', 405],
        ['OPTIONS', '/', null, '', 200],
        ['POST', '/answer', '"a throw"', 'application/json', 500],
        ['POST', '/answer', '"nothing"', 'application/json', 500],
        ['POST', '/_k/warmup', null, '', 200],
        ['GET', '/_k/warmup', null, '', 200],
        ['GET', '/_k/status', null, '', 200],
        ['HEAD', '/__status__', null, '', 200],
        ['POST', '/_k/status', '{}', 'application/json', 404],
        ['GET', '/healthcheck', null, '', 200],
      ];
      for (const [method, path, body, type, status] of rows) {
        const headers: Record<string, string> = type === '' ? {} : { 'content-type': type };
        const reply = await fetch(server.url + path, { method, body, headers });
        assert.equal(reply.status, status, `${method} ${path} ${body}: ${await reply.text()}`);
      }
    });

    test('4: the published clients 3.0.0, 4.0.0 and 6.2.0 call a Potassium app', async (t) => {
      const { server } = shared;
      for (const major of [3, 4] as const) {
        const client = await startClient(t, major, server);
        const ran = await client.ask<RunAnswer>('run', 'key', 'model', { major });
        assert.deepEqual([ran.message, ran.modelOutputs[0]?.json], ['success', { major }]);
        const callID = await client.ask<string>('start', 'key', 'model', { later: major });
        const checked = await untilChecked(client, callID);
        assert.deepEqual(checked.modelOutputs[0]?.json, { later: major });
        if (major === 3) await client.ask('feedback', 'key', callID, { good: true });
      }
      const client = await startClient(t, 6, server);
      assert.deepEqual((await client.ask<CallAnswer>('call', '/', { major: 6 })).json.json, { major: 6 });
      assert.deepEqual((await client.ask<{ json: unknown }>('warmup')).json, { warm: true });
    });

    test('8: a generator that throws breaks the connection off, and gpu_available comes back', async () => {
      const { server } = shared;
      const response = await fetch(`${server.url}/answer`, {
        method: 'POST',
        body: '"a throw after a chunk"',
        headers: JSON_TYPE,
      });
      assert.equal(response.status, 200);
      await assert.rejects(response.text());
      const { inference_time } = await untilPotassium(server, ({ gpu_available }) => gpu_available);
      assert.equal(inference_time, 0);
    });

    test('9: a megabyte of non-ASCII text comes back whole through 6.2.0', async (t) => {
      const { server } = shared;
      const client = await startClient(t, 6, server);
      const text = 'ü漢🍌'.repeat(100_000);
      assert.equal((await client.ask<CallAnswer>('call', '/', text)).json.json, text);
    });

    test('11: binary noise on stdout breaks no frame', async () => {
      const { server } = shared;
      for (let i = 0; i < 20; i += 1) {
        const answer = await post(server, '/noise', { bytes: 10_000, i });
        assert.deepEqual([answer.status, answer.json()], [200, { i }]);
      }
      await server.untilPrinted('end of the noise');
    });

    test('13: a background function that throws leaves the server well', async () => {
      const { server } = shared;
      const job = await endOf(server, await startJob(server, '/later', { throws: 'the app broke' }, 'job'));
      assert.deepEqual([job.state, job.error?.code], ['failed', 'SERVE_INFERENCE_FAILED']);
      await server.untilPrinted('the app broke');
      assert.equal((await post(server, '/', {})).status, 200);
      assert.equal((await potassiumStatus(server)).gpu_available, true);
      assert.equal((await fetch(`${server.url}/healthcheck`)).status, 200);
    });

    test('6: process.exit in the middle of a call is a 500; the next call is answered', async () => {
      const { server } = shared;
      const lost = await post(server, '/work', { dies: 'exit 7' }, 'doomed');
      assert.deepEqual([lost.status, errorOf(lost).code], [500, 'SERVE_WORKER_LOST']);
      assert.equal((await post(server, '/', {})).status, 200);
    });

    test(`7: ${MANY[language]} calls leave no descriptor behind and no memory`, async () => {
      const { server, cues } = shared;
      const pids = [server.pid, (await server.status()).model.workers[0]?.pid as number];
      const descriptors = (): number[] => pids.map((pid) => readdirSync(`/proc/${pid}/fd`).length);
      const before = descriptors();
      const countBefore = (await potassiumStatus(server)).sequence_number;
      await callManyTimes(server, WARM[language]);
      const warmBytes = await frontHeapBytes(server, cues);
      await callManyTimes(server, MANY[language]);
      const grownBytes = (await frontHeapBytes(server, cues)) - warmBytes;
      assert.ok(grownBytes < GROWN_BYTES, `${grownBytes} bytes more than ${warmBytes}`);
      await eventually(
        () => descriptors().every((count, i) => count <= (before[i] as number)),
        60_000,
        () => `descriptors before: ${before.join()}, after: ${descriptors().join()}`,
      );
      const { sequence_number } = await potassiumStatus(server);
      assert.equal(sequence_number - countBefore, WARM[language] + MANY[language]);
    });

    test('14: headers by any spelling, a Response read and written', async () => {
      const { server } = shared;
      const seen = await post(server, '/', {}, undefined, { 'x-CUSTOM': 'yes' });
      assert.equal(seen.json<{ custom: string }>().custom, 'yes');
      const rewritten = await post(server, '/answer', 'rewritten');
      assert.deepEqual(rewritten.json(), { was: { a: 1 }, none: null });
    });
  });

  test('12: an app that takes a route twice does not start, and is not tried again', LIMIT, async (t) => {
    await assertRefused(t, app('potassium-bad-route'), 'twice', /Route already in use: \/\w*(?:\n| \{)/);
  });

  test('14: a legacy handler', LIMIT, async (t) => {
    const legacy = await startHere(app('potassium-legacy'), { t, env: { TEST_PORT: '1' } });
    assert.deepEqual((await post(legacy, '/', { name: 'you' })).json(), { out: 'hello you' });
    await legacy.stop();
  });
});

/** The front's alone: it counts, holds and refuses calls, and delivers webhooks. */
withOneRuntime(({ app, potassium }) => {
  test('3: sequence_number goes up by one with every POST, and with nothing else', LIMIT, async (t) => {
    const server = await startHere(potassium(), { t, args: ['--max-body', '1kb'], env: makeCues(t).env });
    await server.until(({ state }) => state === 'ready');
    const posts: readonly (() => Promise<unknown>)[] = [
      () => post(server, '/', {}),
      () => post(server, '/later', {}, 'job'),
      () => post(server, '/answer', 'a throw'),
      () => post(server, '/', 'x'.repeat(2000)),
      () => post(server, '/nope', {}),
      () => post(server, '/_k/warmup', {}),
      () => fetch(server.url, { method: 'POST', body: '{', headers: JSON_TYPE }),
      () => fetch(server.url, { method: 'POST', body: '{}' }),
    ];
    for (const [i, send] of posts.entries()) {
      await send();
      assert.equal((await potassiumStatus(server)).sequence_number, i + 1);
    }
    for (const method of ['GET', 'PUT', 'HEAD', 'OPTIONS']) await fetch(server.url, { method });
    assert.equal((await potassiumStatus(server)).sequence_number, posts.length);
    await server.stop();
  });

  test('5: calls that come during init are answered, whatever client they come from', LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const server = await startHere(potassium(), { t, env: cues.env });
    const clients = await Promise.all(([3, 4, 6] as const).map((major) => startClient(t, major, server)));
    const [three, four, six] = clients as [(typeof clients)[0], (typeof clients)[0], (typeof clients)[0]];
    const warm = six.ask<{ json: unknown }>('warmup');
    const answers = Promise.all([
      three.ask<RunAnswer>('run', 'key', 'model', { major: 3 }),
      four.ask<RunAnswer>('run', 'key', 'model', { major: 4 }),
      six.ask<CallAnswer>('call', '/', { major: 6 }),
    ]);
    await server.until(({ model }) => model.queue.waiting === 3);
    cues.give('init may end');
    const [ofThree, ofFour, ofSix] = await answers;
    assert.deepEqual(ofThree.modelOutputs[0]?.json, { major: 3 });
    assert.deepEqual(ofFour.modelOutputs[0]?.json, { major: 4 });
    assert.deepEqual(ofSix.json.json, { major: 6 });
    assert.deepEqual((await warm).json, { warm: true });
    assert.doesNotMatch(six.printed(), /Retrying|Status code/, 'asked once');
    await server.stop();
  });

  test('10: 6.2.0 asks again after a full queue, until it is served', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(potassium(), { t, args: ['--queue-size', '0'], env: cues.env });
    await server.until(({ state }) => state === 'ready');
    const running = post(server, '/work', { until: 'go on' }, 'first');
    await cues.untilNoted('begun first');
    const client = await startClient(t, 6, server);
    const refused = client.ask<CallAnswer>('call', '/', { second: true });
    await client.untilPrinted('Retrying...');
    cues.give('go on');
    assert.equal((await running).status, 200);
    assert.deepEqual((await refused).json.json, { second: true });
    await server.stop();
  });

  test("12: an app that takes a route of the server's own does not start", LIMIT, async (t) => {
    const says = /Route already in use: \/_k\/warmup is the server's own/;
    await assertRefused(t, app('potassium-bad-route'), 'reserved', says);
  });

  test('15: a webhook to a dead port: no caller is affected, and the log has one line', LIMIT, async (t) => {
    const env = { HOOK: await deadUrl() };
    const server = await startHere(app('result-webhook'), {
      t,
      env,
      args: ['--drain-timeout', '2s'],
    });
    assert.deepEqual((await post(server, '/', { ask: 1 })).json(), { answer: 1 });
    await server.stop();
    assert.equal(server.stderr().match(/Webhook to /g)?.length, 1);
  });
});

interface RunAnswer {
  readonly message: string;
  readonly modelOutputs: readonly { readonly json: unknown }[];
}

interface CallAnswer {
  readonly json: { readonly json: unknown };
}

async function untilChecked(
  client: Awaited<ReturnType<typeof startClient>>,
  callID: string,
): Promise<RunAnswer> {
  for (;;) {
    const answer = await client.ask<RunAnswer>('check', 'key', callID);
    if (answer.message === 'success') return answer;
  }
}

async function assertRefused(t: TestContext, app: string, route: string, says: RegExp): Promise<void> {
  const server = await startHere(app, { t, env: { ROUTE: route } });
  assert.equal((await server.ended).code, 3);
  assert.match(server.stderr(), says);
  assert.doesNotMatch(server.stderr(), /restarting/);
}

async function callManyTimes(server: Server, calls: number): Promise<void> {
  let left = calls;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= AT_ONCE;
      const pipelined = Array.from({ length: AT_ONCE }, (_, i) => ({ input: {}, id: `${left + i}` }));
      const answers = await askAtOnce(server, pipelined);
      assert.ok(answers.every(({ status }) => status === 200));
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
}
