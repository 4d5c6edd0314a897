/** The status page for the platform's balancer: every POST bumps `sequence_number` once, and availability is a fact. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ask } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { endOf, jobIdOf, post, potassiumStatus, untilPotassium } from '../helpers/potassium.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually, type Server } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

interface Mix {
  readonly server: Server;
  readonly cues: Cues;
  readonly next: () => string;
}

/** Ways to POST; each resolves once the server has done with it. */
const WAYS: Readonly<Record<string, (mix: Mix) => Promise<unknown>>> = {
  handler: ({ server }) => post(server, '/', {}),
  background: async ({ server }) => endOf(server, jobIdOf(await post(server, '/later', {}, 'job'))),
  'background that throws': async ({ server }) =>
    endOf(server, jobIdOf(await post(server, '/later', { throws: 'x' }, 'job'))),
  throws: ({ server }) => post(server, '/answer', 'a throw'),
  'breaks off': ({ server }) => assert.rejects(post(server, '/answer', 'a throw after a chunk')),
  stream: ({ server }) => post(server, '/answer', 'chunks'),
  'bad JSON': ({ server }) => send(server, '/', '{', 'application/json', 400),
  'wrong type': ({ server }) => send(server, '/', '{}', 'text/plain', 400),
  empty: ({ server }) => send(server, '/', '', 'application/json', 400),
  'no route': ({ server }) => send(server, '/nope', '{}', 'application/json', 404),
  'too large': ({ server }) => send(server, '/', 'x'.repeat(5000), 'application/json', 413),
  'bad deadline': ({ server }) => post(server, '/', {}, 'id', { 'x-request-timeout-seconds': 'soon' }),
  warmup: ({ server }) => send(server, '/_k/warmup', '{}', 'application/json', 200),
  'leaves while it runs': (mix) => leave(mix),
  'passes its deadline': ({ server, next }) =>
    post(server, '/work', { until: 'never' }, next(), { 'x-request-timeout-seconds': '0.1' }),
};

/** These count for nothing. */
const NO_POSTS: Readonly<Record<string, (mix: Mix) => Promise<unknown>>> = {
  'GET of a route': ({ server }) => get(server, '/'),
  'GET of nothing': ({ server }) => get(server, '/nope'),
  'GET warm-up': ({ server }) => get(server, '/_k/warmup'),
  status: ({ server }) => get(server, '/_k/status'),
  'HEAD of the status': ({ server }) => get(server, '/__status__', 'HEAD'),
  OPTIONS: ({ server }) => get(server, '/work', 'OPTIONS'),
  PUT: ({ server }) => get(server, '/', 'PUT'),
};

async function send(server: Server, path: string, body: string, type: string, status: number): Promise<void> {
  const init = { method: 'POST', body, headers: { 'content-type': type } };
  const reply = await fetch(server.url + path, init);
  assert.equal(reply.status, status, await reply.text());
}

async function get(server: Server, path: string, method = 'GET'): Promise<void> {
  await (await fetch(server.url + path, { method })).text();
}

/** Hangs up once the call runs; its signal aborts, and the app ends it. */
async function leave({ server, cues, next }: Mix): Promise<void> {
  const id = next();
  const headers = { 'content-type': 'application/json', 'x-banana-request-id': id };
  const call = httpRequest(`${server.url}/work`, { method: 'POST', headers });
  call.on('error', () => {});
  call.end('{"until":"never"}');
  await cues.untilNoted(`begun ${id}`);
  const closed = new Promise((resolve) => call.once('close', resolve));
  call.destroy();
  await closed;
  await eventually(
    () => cues.notes().some((line) => line.startsWith(`aborted ${id}`)),
    60_000,
    () => cues.notes().join('\n'),
  );
}

withOneRuntime(({ app, potassium }) => {
  describe('one server', LIMIT, () => {
    const shared = shareHere(potassium());

    test(
      'the four fields come first, in their order; all are whole numbers of their kind',
      LIMIT,
      async () => {
        const { server } = shared;
        for (const path of ['/_k/status', '/__status__']) {
          const status = await potassiumStatus(server, path);
          const [first, ...rest] = Object.entries(status);
          assert.deepEqual(first, ['gpu_available', true]);
          assert.deepEqual(
            rest.slice(0, 3).map(([name]) => name),
            ['idle_time', 'inference_time', 'sequence_number'],
          );
          for (const [name, value] of rest) assert.ok(Number.isInteger(value) && value >= 0, name);
          assert.deepEqual([status.workers, status.workers_ready, status.restarts], [1, 1, 0]);
        }
      },
    );

    test('a worker whose caller has left is not available until it has ended', LIMIT, async () => {
      const { server, cues } = shared;
      const leaving = new AbortController();
      const work = { url: `${server.url}/work` };
      const left = ask(work, { until: 'go on', deaf: true }, { id: 'deaf', signal: leaving.signal });
      await cues.untilNoted('begun deaf');
      leaving.abort();
      await assert.rejects(left);
      const busy = await untilPotassium(
        server,
        ({ in_flight, inference_time }) => in_flight === 0 && inference_time > 0,
      );
      assert.deepEqual([busy.gpu_available, busy.idle_time], [false, 0]);
      cues.give('go on');
      await untilPotassium(
        server,
        ({ gpu_available, inference_time }) => gpu_available && inference_time === 0,
      );
    });

    test(
      'idle_time grows until a call, a warm-up or a job ends; a POST to an unknown path does not reset it',
      LIMIT,
      async () => {
        const { server } = shared;
        const asks = [
          () => post(server, '/work', {}, 'id'),
          () => post(server, '/_k/warmup', {}),
          async () => endOf(server, jobIdOf(await post(server, '/later', {}, 'job'))),
        ];
        for (const ask of asks) {
          const before = await untilPotassium(server, ({ idle_time }) => idle_time > 200);
          const askedAtMs = performance.now();
          await ask();
          const { idle_time } = await potassiumStatus(server);
          assert.ok(idle_time <= performance.now() - askedAtMs, `${idle_time} after ${before.idle_time}`);
        }
        const before = await potassiumStatus(server);
        assert.equal((await post(server, '/nope', {})).status, 404);
        assert.ok((await potassiumStatus(server)).idle_time >= before.idle_time);
      },
    );
  });

  test('available means that every worker is ready and one is free', LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const server = await startHere(potassium(), { t, env: cues.env, args: ['--workers', '2'] });
    const starting = await potassiumStatus(server);
    assert.deepEqual([starting.gpu_available, starting.idle_time, starting.workers_ready], [false, 0, 0]);
    const held = post(server, '/work', {}, 'held');
    await untilPotassium(server, ({ sequence_number }) => sequence_number === 1);
    assert.equal((await potassiumStatus(server)).inference_time, 0, 'what waits is not running');
    cues.give('init may end');
    await held;
    await untilPotassium(server, ({ gpu_available }) => gpu_available);

    const first = post(server, '/work', { until: 'first' }, 'first');
    await cues.untilNoted('begun first');
    const one = await untilPotassium(server, ({ inference_time }) => inference_time > 0);
    assert.deepEqual([one.gpu_available, one.idle_time, one.in_flight], [true, 0, 1]);
    const second = post(server, '/work', { until: 'second' }, 'second');
    await cues.untilNoted('begun second');
    assert.equal((await potassiumStatus(server)).gpu_available, false);
    cues.give('first');
    await first;
    await untilPotassium(server, ({ in_flight, gpu_available }) => in_flight === 1 && gpu_available);
    cues.give('second');
    await second;
    const idle = await untilPotassium(server, ({ in_flight }) => in_flight === 0);
    assert.deepEqual([idle.gpu_available, idle.inference_time, idle.sequence_number], [true, 0, 3]);
    await server.stop();
  });

  test('a warm-up is held until a worker is ready, and then counts once', LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const server = await startHere(potassium(), { t, env: cues.env });
    let answered = 0;
    const warm = ['POST', 'POST', 'GET'].map(async (method) => {
      const reply = await fetch(`${server.url}/_k/warmup`, { method });
      answered += 1;
      return reply.status;
    });
    await untilPotassium(server, ({ sequence_number }) => sequence_number === 2);
    assert.equal(answered, 0);
    cues.give('init may end');
    assert.deepEqual(await Promise.all(warm), [200, 200, 200]);
    assert.equal((await potassiumStatus(server)).sequence_number, 2);
    await server.stop();
  });

  test('a warm-up of an app that cannot start is refused', LIMIT, async (t) => {
    const args = ['--restart-limit', '0'];
    const server = await startHere(app('throws-in-init'), { t, args });
    const reply = await fetch(`${server.url}/_k/warmup`, { method: 'POST' }).catch(() => null);
    assert.ok(reply === null || reply.status === 503, 'told, or gone with the server');
    await server.ended;
  });

  test('sequence_number counts every POST once, in any mix of requests', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--workers', '2', '--max-body', '4kb'];
    const server = await startHere(potassium(), { t, args, env: cues.env });
    await server.until(({ state }) => state === 'ready');
    let ids = 0;
    const mix: Mix = { server, cues, next: () => `mixed-${(ids += 1)}` };
    const names = [...Object.keys(WAYS), ...Object.keys(NO_POSTS)];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 12 }),
        async (batch) => {
          const before = await potassiumStatus(server);
          await Promise.all(batch.map(async (name) => (WAYS[name] ?? NO_POSTS[name])?.(mix)));
          const posts = batch.filter((name) => name in WAYS).length;
          const after = await untilPotassium(
            server,
            (status) => status.gpu_available && status.in_flight === 0 && status.inference_time === 0,
          );
          assert.equal(after.sequence_number - before.sequence_number, posts);
          assert.equal(after.queue_length, 0);
        },
      ),
      { numRuns: 15 },
    );
    await server.stop();
  });

  test('a full queue counts, and so does a call whose worker dies', LIMIT, async (t) => {
    const cues = makeCues(t);
    const options = { t, args: ['--queue-size', '0'], env: cues.env, expectedRestarts: 1 };
    const server = await startHere(potassium(), options);
    await server.until(({ state }) => state === 'ready');
    const running = post(server, '/work', { until: 'go on', dies: 'SIGKILL' }, 'doomed');
    await cues.untilNoted('begun doomed');
    assert.equal((await post(server, '/work', {}, 'refused')).status, 503);
    assert.equal((await post(server, '/later', {}, 'refused')).status, 503);
    assert.equal((await potassiumStatus(server)).sequence_number, 3);
    cues.give('go on');
    assert.equal((await running).status, 500);
    const after = await untilPotassium(server, ({ gpu_available }) => gpu_available);
    assert.deepEqual([after.sequence_number, after.restarts, after.inference_time], [3, 1, 0]);
    await server.stop();
  });
});
