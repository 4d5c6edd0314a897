/** Workers that stand by: the death of a worker costs no start, and its successor takes the place back. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ask, errorOf, pidOf } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { startManaged } from '../helpers/managed-server.js';
import { holdThree, readAnswers } from '../helpers/pipeline.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually, fixture, type Server, type Status } from '../helpers/server.js';
import { scrape } from '../helpers/scrape.js';

const LIMIT = { timeout: 240_000 };

const readyz = async ({ url }: Server): Promise<number> => (await fetch(`${url}/readyz`)).status;
const pidIn = ({ model }: Status, index: number): number => model.workers[index]?.pid as number;
const standbysIn = ({ model }: Status): boolean[] => model.workers.map(({ standby }) => standby);

/** Waits until one worker serves and the other stands by. */
const untilStanding = (server: Server): Promise<Status> =>
  server.until(({ model }) => model.standby.ready === 1);

/** A server whose worker was killed while a call ran in it; the standby serves, and the successor may not be ready yet. */
async function killed(t: TestContext, app: string, args: readonly string[] = []): Promise<Killed> {
  const cues = makeCues(t);
  const env = cues.env;
  const server = await startHere(app, { t, env, args: ['--standby', '1', ...args], expectedRestarts: 1 });
  const before = await untilStanding(server);
  cues.give('init may not end');
  const running = ask(server, { until: 'never' }, { id: 'running' });
  await cues.untilNoted('begun running');
  return { server, cues, before, running };
}

interface Killed {
  readonly server: Server;
  readonly cues: Cues;
  readonly before: Status;
  readonly running: ReturnType<typeof ask>;
}

withOneRuntime(({ app }) => {
  test(
    'what had not begun goes to the standby at once, and the successor takes its place back',
    LIMIT,
    async (t) => {
      const { server, cues, before, running } = await killed(t, app('works'));
      assert.match(
        server.stderr(),
        / with 1 worker on the CPU .* and 1 standby \(the memory of one more worker\) on http/,
      );
      assert.deepEqual(standbysIn(before), [false, true]);
      const queued = [1, 2].map((n) => ask(server, { n }));
      await server.until(({ model }) => model.queue.waiting === 2);
      process.kill(pidIn(before, 0), 'SIGKILL');
      assert.equal(errorOf(await running).code, 'SERVE_WORKER_LOST');
      for (const answer of await Promise.all(queued)) {
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.json<{ pid: number }>().pid, pidIn(before, 1));
      }
      const between = await server.status();
      assert.deepEqual(
        [standbysIn(between), between.model.standby],
        [[true, false], { wanted: 1, ready: 0 }],
      );
      assert.deepEqual([between.model.state, await readyz(server)], ['ready', 200]);

      cues.give('init may end');
      const after = await untilStanding(server);
      assert.deepEqual(standbysIn(after), [false, true]);
      assert.equal(pidIn(after, 1), pidIn(before, 1));
      assert.equal(await pidOf(server), pidIn(after, 0));
      await server.stop('SIGTERM');
    },
  );
});

test('a call that was sent ahead to a worker that dies is answered by the standby', LIMIT, async (t) => {
  const cues = makeCues(t);
  const args = ['--standby', '1'];
  const server = await startHere(fixture('works.mjs'), { t, args, env: cues.env, expectedRestarts: 1 });
  const before = await untilStanding(server);
  cues.give('init may not end');
  const { pid, socket, letGo } = await holdThree(server, cues);
  assert.equal(pid, pidIn(before, 0));
  process.kill(pid, 'SIGKILL');
  letGo();
  const answers = await readAnswers(socket, 3);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [500, 200, 200],
  );
  for (const ahead of answers.slice(1)) assert.equal(ahead.json<{ pid: number }>().pid, pidIn(before, 1));
  cues.give('init may end');
  await untilStanding(server);
  await server.stop('SIGTERM');
});

/** The standby holds a call, and has lost its place. */
async function displaced(
  t: TestContext,
  args: readonly string[],
): Promise<Killed & { held: ReturnType<typeof ask> }> {
  const state = await killed(t, fixture('works.mjs'), args);
  const { server, cues, before } = state;
  process.kill(pidIn(before, 0), 'SIGKILL');
  const held = ask(server, { until: 'finish' }, { id: 'held' });
  await cues.untilNoted('begun held');
  cues.give('init may end');
  await untilStanding(server);
  assert.notEqual(await pidOf(server), pidIn(before, 1), 'its place is taken');
  assert.equal((await server.status()).model.workers[1]?.held, 1);
  return { ...state, held };
}

test('a drain waits for a call of a standby that has lost its place', LIMIT, async (t) => {
  const { server, cues, held } = await displaced(t, []);
  server.process.kill('SIGTERM');
  await server.until(({ state }) => state === 'draining');
  cues.give('finish');
  assert.equal((await held).status, 200);
  assert.deepEqual(await server.ended, { code: 0, signal: null });
});

test('at the end of a drain such a call gets an error as any other', LIMIT, async (t) => {
  const { server, held } = await displaced(t, ['--drain-timeout', '1s']);
  server.process.kill('SIGTERM');
  const answer = await held;
  assert.equal(answer.status, 500, answer.text);
  assert.equal(errorOf(answer).code, 'SERVE_WORKER_LOST');
  await server.ended;
});

test('readiness, metrics and the status of Potassium count the wanted workers', LIMIT, async (t) => {
  const args = ['--workers', '2', '--standby', '1', '--metrics'];
  const server = await startHere(fixture('killable-potassium.mjs'), { t, args });
  const { model } = await untilStanding(server);
  assert.deepEqual([model.minWorkers, model.maxWorkers], [2, 2]);
  const metrics = await scrape(server.url);
  const states = ['idle', 'standby'].map((state) => metrics.sum('banana_workers', { state }));
  assert.deepEqual([states, metrics.sum('banana_wanted_workers')], [[2, 1], 2]);
  const { workers, gpu_available } = (await (await fetch(`${server.url}/_k/status`)).json()) as {
    workers: number;
    gpu_available: boolean;
  };
  assert.deepEqual([workers, gpu_available], [2, true]);
  await server.stop('SIGTERM');
});

test(
  'over HTTP, a model is registered with standbys, keeps them when it is scaled, and can lose them',
  LIMIT,
  async (t) => {
    const server = await startManaged(t, {});
    const untilHas = (serving: number, standing: number): Promise<void> => {
      const counts = (): string => {
        const [model] = server.handle.models.describe({ name: 'm' });
        const ready = model?.workers.filter(({ state, standby }) => state === 'idle' && !standby).length ?? 0;
        return `${ready} ${model?.standby.ready} ${model?.workers.length}`;
      };
      return eventually(() => counts() === `${serving} ${standing} ${serving + standing}`, 60_000, counts);
    };
    await server.said('POST /models?url=echoes.mjs&model_name=m&initial_workers=1&standby=1');
    await untilHas(1, 1);
    const described = await server.describe('m');
    assert.deepEqual([described.status, described.workers.length], ['Healthy', 1]);
    await server.said('PUT /models/m?min_worker=2&synchronous=true');
    await untilHas(2, 1);
    await server.said('PUT /models/m?min_worker=1&synchronous=true');
    await untilHas(1, 1);
    await server.said('PUT /models/m?standby=2&synchronous=true');
    await untilHas(1, 2);
    await server.said('PUT /models/m?standby=0&synchronous=true');
    await untilHas(1, 0);
    await server.said('PUT /models/m?standby=1&synchronous=true');
    await untilHas(1, 1);
    await server.said('PUT /models/m?min_worker=0&synchronous=true');
    await untilHas(0, 0);
  },
);
