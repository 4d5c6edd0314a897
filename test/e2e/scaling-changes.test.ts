/** Changes of models that scale themselves: by operators, by new code, by orders to load, and by jobs that are due. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { editedApp } from '../helpers/edited-app.js';
import { jobEnd, startAsync } from '../helpers/jobs.js';
import { startManaged, type ManagedServer } from '../helpers/managed-server.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { call, eventually, fixture, startServer } from '../helpers/server.js';
import { readiness, watched } from '../helpers/watched.js';

const LIMIT = { timeout: 240_000 };
const ECHO = fixture('echoes.mjs');
const saying = (text: string): string => `export const inference = () => '${text}';`;

/** Bounds, number of workers and state of a model. */
function facts(
  { handle }: ManagedServer,
  name: string,
): [min: number, max: number, workers: number, state: string] {
  const [model] = handle.models.describe({ name });
  assert.ok(model !== undefined);
  return [model.minWorkers, model.maxWorkers, model.workers.length, model.state];
}

async function untilIs(
  server: ManagedServer,
  name: string,
  expected: ReturnType<typeof facts>,
): Promise<void> {
  await eventually(
    () => facts(server, name).join() === expected.join(),
    60_000,
    () => `${facts(server, name).join()}, not ${expected.join()}`,
  );
}

const starts = (t: TestContext, options: Parameters<typeof startManaged>[1]): Promise<ManagedServer> =>
  startManaged(t, options);

test(
  'a program sets the bounds: 0 to 0 refuses calls, 0 to more holds them, what is left out stays as configured',
  LIMIT,
  async (t) => {
    const server = await starts(t, {
      models: { echo: { app: ECHO, maxWorkers: 3, minWorkers: 0, idleTimeout: 60_000 } },
    });
    const { models } = server.handle;
    await server.handle.ready;
    assert.deepEqual(facts(server, 'echo'), [0, 3, 0, 'idle']);
    const say = (): Promise<number> => call(`${server.url}/models/echo/`, '1').then(({ status }) => status);
    assert.deepEqual(await models.scale({ name: 'echo' }, { min: 0, max: 0 }).settled, {
      result: 'done',
      wanted: 0,
      ready: 0,
      error: null,
    });
    assert.deepEqual([facts(server, 'echo'), await say()], [[0, 0, 0, 'unloaded'], 503]);
    await models.scale({ name: 'echo' }, { min: 0 }).settled;
    assert.deepEqual([facts(server, 'echo'), await say()], [[0, 3, 0, 'idle'], 200]);
    assert.equal((await models.scale({ name: 'echo' }, { min: 2 }).settled).ready, 2);
    assert.deepEqual(facts(server, 'echo'), [2, 3, 2, 'ready']);
    await models.scale({ name: 'echo' }, { min: 5 }).settled;
    assert.deepEqual(facts(server, 'echo'), [5, 5, 5, 'ready']);
    await models.scale({ name: 'echo' }).settled;
    assert.deepEqual(facts(server, 'echo').slice(0, 2), [0, 3]);
  },
);

test(
  'a model that is registered at run time follows the options of the server, and its own',
  LIMIT,
  async (t) => {
    const server = await starts(t, { models: {}, idleTimeout: 60_000 });
    const { models } = server.handle;
    await models.register({ name: 'idle', app: ECHO });
    assert.deepEqual(facts(server, 'idle'), [0, 1, 0, 'idle']);
    assert.equal((await call(`${server.url}/models/idle/`, '1')).text, '1');
    await models.register({ name: 'warm', app: ECHO, minWorkers: 1, maxWorkers: 2 });
    await untilIs(server, 'warm', [1, 2, 1, 'ready']);
    await models.register({ name: 'fixed', app: ECHO, workers: 2 });
    assert.deepEqual(facts(server, 'fixed'), [0, 0, 0, 'unloaded']);
  },
);

test('over HTTP, a registration and PUT leave what they do not name as configured', LIMIT, async (t) => {
  const store = { minWorkers: 0, maxWorkers: 3, idleTimeout: 60_000 };
  const server = await starts(t, store);
  assert.equal(await server.said('POST /models?url=echoes.mjs&model_name=m'), '200 Model "m" registered');
  assert.deepEqual(facts(server, 'm'), [0, 3, 0, 'idle']);
  assert.equal((await server.describe('m')).status, 'Healthy');
  assert.equal((await fetch(`${server.url}/ping`)).status, 200);
  assert.equal((await server.infer('m', 1)).status, 200);
  assert.equal(await server.said('PUT /models/m?min_worker=2&synchronous=true'), '200 Workers scaled');
  assert.deepEqual(facts(server, 'm'), [2, 3, 2, 'ready']);
  await server.said('PUT /models/m?max_worker=1&synchronous=true');
  assert.deepEqual(facts(server, 'm').slice(0, 2), [0, 1]);
  await server.said('PUT /models/m?min_worker=0&max_worker=0&synchronous=true');
  assert.match(await server.refusal('m'), /^503 /);
  await server.said('PUT /models/m?synchronous=true');
  assert.deepEqual(facts(server, 'm'), [0, 3, 0, 'idle']);
  const more = 'POST /models?url=echoes.mjs&model_name=two&initial_workers=2';
  assert.deepEqual(
    [await server.said(more), facts(server, 'two')],
    ['200 Workers scaled', [2, 3, 2, 'ready']],
  );
});

test('over HTTP, a registration lets a model scale itself, and so does a later PUT', LIMIT, async (t) => {
  const server = await starts(t, {});
  await server.said('POST /models?url=echoes.mjs&model_name=m&min_worker=0&max_worker=2');
  assert.deepEqual(facts(server, 'm'), [0, 2, 0, 'idle']);
  await server.said('POST /models?url=echoes.mjs&model_name=n&initial_workers=1');
  assert.equal(server.handle.models.describe({ name: 'n' })[0]?.scaling, null);
  await server.said('PUT /models/n?idle_timeout=60&synchronous=true');
  assert.equal(server.handle.models.describe({ name: 'n' })[0]?.scaling?.idleTimeoutMs, 60_000);
  assert.deepEqual(facts(server, 'n').slice(0, 2), [0, 1]);
});

test(
  'an order to load starts a worker of an idle model, and fails if that cannot start',
  LIMIT,
  async (t) => {
    const server = await starts(t, { idleTimeout: 60_000 });
    const load = (name: string): Promise<number> =>
      call(`${server.url}/v2/repository/models/${name}/load`, '{}').then(({ status }) => status);
    const managed = (name: string): Promise<number> =>
      call(`${server.managementUrl}/v2/repository/models/${name}/load`, '{}').then(({ status }) => status);
    const order = (await load('echoes')) === 404 ? managed : load;
    assert.equal(await order('echoes'), 200);
    assert.deepEqual(facts(server, 'echoes'), [0, 1, 1, 'ready']);
    assert.notEqual(await order('throws_in_init'), 200);
    assert.deepEqual(
      server.handle.models.describe().map(({ name }) => name),
      ['echoes'],
    );
  },
);

test(
  'saved code is proved at zero: a worker starts, and one that fails makes /readyz 503',
  LIMIT,
  async (t) => {
    const app = editedApp(t, { 'app.mjs': saying('one') });
    const server = await watched(t, app, 'app.mjs', ['--idle-timeout', '200ms']);
    assert.deepEqual(await readiness(server), [200, 'idle']);
    app.save('app.mjs', saying('two'));
    await server.untilPrinted(/worker 0 starts: the app or its options have changed/);
    await server.untilPrinted(/worker 0 leaves/);
    await server.until(({ model }) => model.state === 'idle');
    app.save('app.mjs', 'this is no code');
    await server.until(({ model }) => model.state === 'unhealthy');
    assert.deepEqual(await readiness(server), [503, 'unhealthy']);
    app.save('app.mjs', saying('three'));
    await server.until(({ model }) => model.state === 'ready' || model.state === 'idle');
    assert.equal((await ask(server, {})).json(), 'three');
    await server.stop();
  },
);

test(
  'a replaced model is proved at zero, and options that no longer scale it give it its workers',
  LIMIT,
  async (t) => {
    const server = await starts(t, { models: { echo: { app: ECHO, idleTimeout: 60_000 } } });
    const { models } = server.handle;
    await server.handle.ready;
    const works = fixture('kinds-of-answers.mjs');
    assert.equal(
      (await (await models.replace({ name: 'echo', app: works, idleTimeout: 60_000 })).settled).result,
      'done',
    );
    assert.deepEqual(facts(server, 'echo'), [0, 1, 1, 'ready']);
    const broken = await models.replace({
      name: 'echo',
      app: fixture('syntax-error.mjs'),
      idleTimeout: 60_000,
    });
    assert.equal((await broken.settled).result, 'failed');
    assert.deepEqual(facts(server, 'echo'), [0, 1, 1, 'ready']);
    await (
      await models.replace({ name: 'echo', app: works, workers: 2 })
    ).settled;
    await untilIs(server, 'echo', [2, 2, 2, 'ready']);
    await (
      await models.replace({ name: 'echo', app: works, minWorkers: 0, maxWorkers: 4, idleTimeout: 100 })
    ).settled;
    await untilIs(server, 'echo', [0, 4, 0, 'idle']);
  },
);

withOneRuntime(({ app }) => {
  test('a due job starts a worker, also one that an earlier server has left', LIMIT, async (t) => {
    const cues = makeCues(t);
    const folder = mkdtempSync(join(tmpdir(), 'banana-jobs-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const start = (): ReturnType<typeof startServer> =>
      startServer(app('jobs'), {
        t,
        env: cues.env,
        args: ['--jobs', `local:${folder}/jobs`, '--drain-lag', '0s', '--idle-timeout', '200ms'],
      });
    const server = await start();
    const first = await startAsync(server, '/', { result: 1 });
    await jobEnd(server, first);
    await server.until(({ model }) => model.state === 'idle' && model.workers.length === 0);
    await jobEnd(server, await startAsync(server, '/', { result: 2 }));
    await startAsync(server, '/', { until: 'never' });
    await server.until(({ model }) => model.workers.some(({ state }) => state === 'busy'));
    const left = await startAsync(server, '/', { result: 3 });
    server.process.kill('SIGKILL');
    await server.ended;
    const next = await start();
    await jobEnd(next, left);
    assert.match(next.stderr(), /worker 0 starts/);
    await next.stop();
  });
});
