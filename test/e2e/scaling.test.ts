/** Models that scale themselves: workers come when calls need them and go when they do not, and no call is lost or run twice. */
import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ask } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, isAlive, runCommand, type Server } from '../helpers/server.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };

const CYCLES = 8;

interface Readiness {
  readonly state: string;
  readonly notReady?: Readonly<Record<string, string>>;
  readonly idle?: readonly string[];
}

async function readiness(server: Server, path = '/readyz'): Promise<[status: number, Readiness]> {
  const reply = await fetch(server.url + path);
  return [reply.status, (await reply.json()) as Readiness];
}

async function untilIdle(server: Server): Promise<void> {
  await server.until(({ model }) => model.state === 'idle' && model.workers.length === 0);
}

/** The ids of the calls that have begun in a worker, in their order. */
function begun(cues: Cues): string[] {
  return cues.notes().flatMap((note) => (note.startsWith('begun ') ? [note.slice('begun '.length)] : []));
}

withOneRuntime(({ app }) => {
  describe('a model with an idle timeout', LIMIT, () => {
    test('has no worker until the first call, is ready all the same, and is idle again later', async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('works'), { t, env: cues.env, args: ['--idle-timeout', '100ms'] });
      assert.deepEqual(await readiness(server), [200, { state: 'idle' }]);
      assert.deepEqual(await readiness(server, '/readyz/works'), [200, { state: 'idle', model: 'works' }]);
      assert.deepEqual(await readiness(server, '/v2/health/ready'), [200, { ready: true, live: true }]);
      const { status } = await fetch(`${server.url}/v2/models/works/ready`);
      assert.equal(status, 200);
      const { model } = await server.status();
      assert.deepEqual([model.minWorkers, model.maxWorkers, model.workers], [0, 1, []]);

      const first = (await ask(server, { n: 1 })).json<{ input: object; pid: number }>();
      assert.deepEqual(first.input, { n: 1 });
      await untilIdle(server);
      assert.equal(isAlive(first.pid), false, 'its process has ended');
      const second = (await ask(server, { n: 2 })).json<{ pid: number }>();
      assert.notEqual(second.pid, first.pid);
      assert.match(server.stderr(), / with 0 to 1 worker \(as its calls need them\) on http/);
      assert.match(server.stderr(), /worker 0 starts: 1 call without a worker/);
      assert.match(server.stderr(), /worker 0 leaves: no call for \d+ m?s/);
      const changes = (await server.status()).model.scaling?.changes.map(
        ({ change, rule }) => `${change}: ${rule}`,
      );
      assert.deepEqual(changes?.slice(0, 3), ['started: first-call', 'retired: idle', 'started: first-call']);
      await server.stop();
    });

    test(`${CYCLES} times from one worker to none under load: no call is lost, none runs twice`, async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('works'), { t, env: cues.env, args: ['--idle-timeout', '50ms'] });
      const pids = new Set<number>();
      let sent = 0;
      const send = async (): Promise<void> => {
        sent += 1;
        const n = sent;
        const reply = await ask(server, { n });
        assert.equal(reply.status, 200, reply.text);
        const { input, pid } = reply.json<{ input: object; pid: number }>();
        assert.deepEqual(input, { n });
        pids.add(pid);
      };
      // The pauses are about as long as the idle timeout, so that calls come while a worker is leaving.
      while (pids.size <= CYCLES) {
        await Promise.all([
          send(),
          delay(Math.random() * 20).then(send),
          delay(Math.random() * 60).then(send),
        ]);
        await delay(Math.random() * 120);
      }
      const ids = begun(cues);
      assert.deepEqual([ids.length, new Set(ids).size], [sent, sent]);
      await untilIdle(server);
      await server.stop();
    });
  });

  test('--workers beside an option of scaling ends the start with code 2', async () => {
    const { ended, stderr } = runCommand([app('works'), '--workers', '2', '--idle-timeout', '1s']);
    assert.equal((await ended).code, 2);
    assert.match(stderr(), /--workers and --idle-timeout exclude each other/);
  });

  test(
    'probes, pages, status, metrics and a stop start no worker; a warm-up does, and what the app said stays known',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--idle-timeout', '200ms', '--metrics'];
      const server = await startHere(app('works'), { t, env: cues.env, args });
      const pages = [
        '/readyz',
        '/livez',
        '/healthcheck',
        '/ping',
        '/status',
        '/metrics',
        '/openapi.json',
        '/',
        '/_k/live',
        '/_k/status',
        '/v2/models/works/ready',
        '/v2/models/works',
      ];
      const look = async (): Promise<void> => {
        for (const path of pages) await (await fetch(server.url + path)).body?.cancel();
        assert.deepEqual((await server.status()).model.workers, []);
      };
      await look();
      assert.deepEqual((await call(`${server.url}/_k/warmup`, null, {})).json(), { warm: true });
      await untilIdle(server);
      await look();
      const described = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: object };
      assert.ok('/' in described.paths, 'the route is known at zero');
      assert.equal((await call(`${server.url}/no-such`, '{}')).status, 404, 'so is that there is no other');
      assert.deepEqual((await server.status()).model.workers, []);
      await server.stop();
      assert.equal(server.stderr().match(/worker 0 starts/g)?.length, 1, 'the stop has started none either');
    },
  );

  test(
    'a call that cannot wait for the start is refused with Retry-After, and starts a worker all the same',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('works'), { t, env: cues.env, args: ['--idle-timeout', '30s'] });
      const headers = { 'content-type': 'application/json', 'x-request-timeout-seconds': '0.5' };
      const refused = await call(server.url, '{}', headers);
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
      await server.until(({ model }) => model.state === 'ready');
      assert.equal((await ask(server, {})).status, 200);
      assert.equal(begun(cues).length, 1);
      await server.stop();
    },
  );

  test(
    'a first start that gives up refuses calls and is not ready, but the server stays up',
    LIMIT,
    async (t) => {
      const server = await startHere(app('throws-in-init'), { t, args: ['--min-workers', '0'] });
      assert.deepEqual(await readiness(server), [200, { state: 'idle' }]);
      const refused = await ask(server, {});
      assert.deepEqual(
        [refused.status, refused.json<{ error: { code: string } }>().error.code],
        [503, 'SERVE_NOT_READY'],
      );
      const [status, body] = await readiness(server);
      assert.deepEqual([status, (body as { state: string }).state], [503, 'unhealthy']);
      assert.equal((await ask(server, {})).status, 503);
      assert.match(server.stderr(), /Staying up and answering 503/);
      await server.stop('SIGINT', 1);
    },
  );

  test('a failed start is tried again without callers, until a worker is ready', LIMIT, async (t) => {
    const cues = makeCues(t);
    const env = { ...cues.env, DIE_BY: 'exit 1' };
    const server = await startHere(app('dies-in-init'), { t, env, args: ['--idle-timeout', '60s'] });
    const headers = { 'content-type': 'application/json', 'x-request-timeout-seconds': '0.5' };
    assert.equal((await call(server.url, '{}', headers)).status, 503); // it only causes the start
    await server.untilPrinted(/worker 0 died/);
    await server.until(({ model }) => model.state === 'ready');
    await server.stop('SIGINT', 1);
  });

  test(
    'calls that wait start more workers, up to the maximum, and these leave one by one down to the minimum',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = [
        '--min-workers',
        '1',
        '--max-workers',
        '3',
        '--idle-timeout',
        '200ms',
        '--target-wait',
        '10ms',
      ];
      const server = await startHere(app('works'), { t, env: cues.env, args });
      await server.until(({ state }) => state === 'ready');
      const calls = Array.from({ length: 12 }, (_, n) => ask(server, { n, until: 'go on' }));
      await server.until(({ model }) => model.workers.filter(({ state }) => state === 'busy').length === 3);
      assert.equal((await server.status()).model.workers.length, 3);
      cues.give('go on');
      for (const reply of await Promise.all(calls)) assert.equal(reply.status, 200);
      await server.until(({ model }) => model.workers.length === 1);
      assert.match(server.stderr(), /worker [012] starts: the last of \d+ calls in line would wait/);
      assert.match(server.stderr(), /worker [12] leaves: /);
      assert.equal(new Set(begun(cues)).size, 12);
      await server.stop();
    },
  );

  test('a drain starts a worker for the calls that are held', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(app('works'), { t, env: cues.env, args: ['--idle-timeout', '60s'] });
    const held = ask(server, { n: 1 });
    await server.until(
      ({ model }) => model.queue.waiting + model.queue.arriving > 0 || model.workers.length > 0,
    );
    server.process.kill('SIGINT');
    assert.deepEqual((await held).json<{ input: object }>().input, { n: 1 });
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });

  test(
    'the models of a store are idle at the start, and each gets a worker with its first call',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const names = ['works', 'echoes', 'websockets'];
      const args = ['--model-store', dirname(app('works')), '--idle-timeout', '60s', '--metrics'];
      const listed = ['--models', names.map((name) => `${name}.mjs`).join(',')];
      const server = await startHere(null, {
        t,
        env: cues.env,
        args: [...args, ...listed, '--management-port', '0'],
      });
      assert.deepEqual(await readiness(server), [200, { state: 'idle', idle: names }]);
      assert.deepEqual(await (await fetch(`${server.url}/ping`)).json(), { status: 'Healthy' });
      assert.equal((await call(`${server.url}/predictions/echoes`, '5')).text, '5');
      assert.deepEqual(await readiness(server), [200, { state: 'ready', idle: ['works', 'websockets'] }]);
      const socket = await openSocket(t, server, '/models/websockets/echo');
      socket.socket.send('hello');
      assert.deepEqual(await socket.heard(1), ['hello']);
      const text = await (await fetch(`${server.url}/metrics`)).text();
      const series = (name: string, labels: string): string | undefined =>
        text.split('\n').find((line) => line.startsWith(`${name}{`) && line.includes(labels));
      assert.match(
        series('banana_scaling_changes_total', 'model="echoes"') ?? '',
        /change="started",rule="first-call"} 1$/,
      );
      assert.match(series('banana_load_peak_calls', 'model="echoes"') ?? '', / 1$/);
      assert.match(series('banana_load_calls', 'model="websockets"') ?? '', / 1$/);
      assert.match(series('banana_wanted_workers', 'model="works"') ?? '', / 0$/);
      await server.stop();
    },
  );
});
