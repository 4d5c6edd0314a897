/** `server.models`: models that come and go while the server runs. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { serve, type ServeOptions, type ServerHandle } from '../../index.js';
import { startTestServer } from '../../supervisor/program.js';
import { errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { jobEnd, jobPage } from '../helpers/jobs.js';
import { calmHoldings, modelStorm, untilNothingHasGrown } from '../helpers/model-storm.js';
import { call, eventually, fixture, isAlive, type Answer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const ECHO = fixture('echoes.mjs');

async function start(t: TestContext, options: ServeOptions = {}): Promise<ServerHandle> {
  const quiet = { host: '127.0.0.1', port: 0, logLevel: 'silent', gpus: 'none' } as const;
  const server = await serve({ ...quiet, models: { echo: ECHO }, ...options });
  t.after(() => server.kill());
  await server.ready;
  return server;
}

/** The app sees what a test's process has in its environment. */
function setEnv(t: TestContext, env: Readonly<Record<string, string>>): void {
  Object.assign(process.env, env);
  t.after(() => {
    for (const name of Object.keys(env)) delete process.env[name];
  });
}

function ask({ url }: ServerHandle, name: string, input: unknown = {}): Promise<Answer> {
  return call(`${url}/models/${name}/`, JSON.stringify(input));
}

function pidsOf({ models }: ServerHandle, name: string): number[] {
  return models.describe({ name }).flatMap(({ workers }) => workers.flatMap(({ pid }) => pid ?? []));
}

test('a probe of an unknown model gets no list of the others where callers need keys', LIMIT, async (t) => {
  const models = { secret: ECHO, echo: ECHO };
  const server = await start(t, { models, apiKey: 'a-key-of-the-test' });
  const told = await call(`${server.url}/readyz/nobody`, null, {}, { method: 'GET' });
  assert.deepEqual([told.status, errorOf(told).code], [404, 'SERVE_MODEL_NOT_FOUND']);
  assert.doesNotMatch(told.text, /secret/);
});

test('without any model left, the error of a call explains it', LIMIT, async (t) => {
  const server = await start(t);
  await server.models.unregister({ name: 'echo' }).settled;
  const told = await call(`${server.url}/`, '1');
  assert.match(errorOf(told).message, /This server has no models now\.$/);
});

test(
  'a registered model loads nothing until it is scaled, then answers, then is gone for good',
  LIMIT,
  async (t) => {
    const server = await start(t);
    const registered = await server.models.register({ name: 'late', app: ECHO, workers: 2, queueSize: 7 });
    assert.deepEqual(
      [registered.state, registered.workers, registered.loadedAtStartup, registered.queue.maxCalls],
      ['unloaded', [], false, 7],
    );
    const early = await ask(server, 'late');
    assert.deepEqual([early.status, early.headers.has('retry-after')], [503, true]);

    const up = server.models.scale({ name: 'late' });
    assert.deepEqual(up.accepted, { name: 'late', version: '1' });
    const held = await ask(server, 'late', { held: 'while it starts' });
    assert.deepEqual(held.json(), { held: 'while it starts' });
    assert.deepEqual(await up.settled, { result: 'done', wanted: 2, ready: 2, error: null });
    const [status] = server.models.describe({ name: 'late' });
    assert.deepEqual([status?.state, status?.minWorkers, status?.maxWorkers], ['ready', 2, 2]);

    const pids = pidsOf(server, 'late');
    assert.equal(pids.length, 2);
    const end = await server.models.unregister({ name: 'late' }).settled;
    assert.deepEqual(end, { result: 'done', wanted: 0, ready: 0, error: null });
    assert.deepEqual(pids.filter(isAlive), []);
    assert.equal((await ask(server, 'late')).status, 404);
    assert.throws(() => server.models.describe({ name: 'late' }), { code: 'SERVE_MODEL_NOT_FOUND' });
    assert.equal((await ask(server, 'echo')).status, 200);
    await server.close();
  },
);

test(
  'a model is replaced while it serves: options at once, its app worker by worker, and no call is lost',
  LIMIT,
  async (t) => {
    const cues = makeCues(t);
    setEnv(t, cues.env);
    const server = await start(t);
    await server.models.register({ name: 'm', app: ECHO });
    await server.models.scale({ name: 'm' }, { min: 2 }).settled;
    const pids = pidsOf(server, 'm');
    const sameApp = await server.models.replace({ name: 'm', app: ECHO, queueSize: 3 });
    assert.equal((await sameApp.settled).result, 'done');
    assert.deepEqual(
      [server.models.describe({ name: 'm' })[0]?.queue.maxCalls, pidsOf(server, 'm')],
      [3, pids],
    );

    const statuses = new Set<number>();
    let isOver = false;
    const callers = [1, 2].map(async () => {
      while (!isOver) statuses.add((await ask(server, 'm')).status);
    });
    const { settled } = await server.models.replace({ name: 'm', app: fixture('works.mjs') });
    assert.deepEqual(await settled, { result: 'done', wanted: 2, ready: 2, error: null });
    isOver = true;
    await Promise.all(callers);
    assert.deepEqual([...statuses], [200]);
    assert.ok('pid' in (await ask(server, 'm')).json<object>(), 'the new app answers');
    assert.deepEqual(pids.filter(isAlive), []);
    await server.close();
  },
);

/** A folder with an app in Python and an interpreter whose version is not known yet. */
function pythonPlace(t: TestContext): { folder: string; app: string; python: string } {
  const folder = mkdtempSync(join(tmpdir(), 'banana-replaced-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [app, python] = [join(folder, 'app.py'), join(folder, 'python')];
  writeFileSync(app, 'def inference(model_inputs):\n    return "Python"\n');
  writeFileSync(python, '#!/bin/sh\nexec python3 "$@"\n', { mode: 0o755 });
  return { folder, app, python };
}

test(
  'the later of two replacements stays, even if it takes longer to find the interpreter of the earlier one',
  LIMIT,
  async (t) => {
    const { app, python } = pythonPlace(t);
    const server = await start(t);
    const [earlier, later] = await Promise.all([
      server.models.replace({ name: 'echo', app, python }),
      server.models.replace({ name: 'echo', app: ECHO }),
    ]);
    assert.equal((await earlier.settled).result, 'done');
    assert.equal((await later.settled).result, 'done');
    assert.equal((await ask(server, 'echo', 1)).json(), 1, 'the later one answers');
    await server.close();
  },
);

test('warnings about an interpreter are logged when a model is replaced, too', LIMIT, async (t) => {
  const { folder, app } = pythonPlace(t);
  setEnv(t, { VIRTUAL_ENV: join(folder, 'gone') });
  const server = await start(t, { cwd: folder, logLocation: 'logs', logLevel: 'warn' });
  const { settled } = await server.models.replace({ name: 'echo', app });
  assert.equal((await settled).result, 'done');
  await server.close();
  const logged = readFileSync(join(folder, 'logs', 'mms_log.log'), 'utf8');
  assert.match(logged, /WARN: \S*app\.py: VIRTUAL_ENV names \S*gone, which has no bin\/python/);
});

test('a replacement that cannot start fails, and what was before goes on', LIMIT, async (t) => {
  const server = await start(t);
  const pids = pidsOf(server, 'echo');
  const { settled } = await server.models.replace({ name: 'echo', app: fixture('throws-in-init.mjs') });
  const { result, error } = await settled;
  assert.deepEqual([result, error === null], ['failed', false]);
  assert.deepEqual((await ask(server, 'echo', 1)).json(), 1);
  assert.deepEqual(pidsOf(server, 'echo'), pids);
  await server.close();
});

test(
  'a call that does not end within the drain timeout is cut off when its model is unregistered',
  LIMIT,
  async (t) => {
    const server = await start(t);
    await server.models.register({ name: 'late', app: fixture('never-returns.mjs') });
    await server.models.scale({ name: 'late' }, { min: 1 }).settled;
    const held = ask(server, 'late', { obeys: false });
    await eventually(
      () => server.models.describe({ name: 'late' })[0]?.inFlight === 1,
      60_000,
      () => 'the call never runs',
    );
    const { settled } = server.models.unregister({ name: 'late' }, { drainTimeoutMs: 100 });
    assert.equal((await held).status, 500);
    assert.equal((await settled).result, 'done');
    assert.equal((await ask(server, 'echo')).status, 200);
    await server.close();
  },
);

test(
  'jobs that name no version wait for the default one, and begin at once when it is switched',
  LIMIT,
  async (t) => {
    const cues = makeCues(t);
    setEnv(t, cues.env);
    const server = await start(t);
    const refs = ['1', '2'].map((version) => ({ name: 'm', version }));
    for (const ref of refs) {
      await server.models.register({ ...ref, app: fixture('works.mjs') });
      await server.models.scale(ref, { min: 1 }).settled;
    }
    const submit = async (input: unknown): Promise<string> => {
      const headers = { 'content-type': 'application/json', prefer: 'respond-async' };
      const { headers: told } = await call(`${server.url}/models/m/`, JSON.stringify(input), headers);
      return told.get('x-banana-job-id') ?? '';
    };
    const busy = await submit({ until: 'the first may end' });
    await eventually(
      async () => (await jobPage(server, busy)).state === 'running',
      60_000,
      () => 'the first job waits',
    );
    const waiting = await submit({});
    assert.equal((await jobPage(server, waiting)).state, 'queued');
    server.models.setDefault({ name: 'm', version: '2' });
    assert.equal((await jobEnd(server, waiting)).state, 'succeeded');
    cues.give('the first may end');
    assert.equal((await jobEnd(server, busy)).state, 'succeeded');
    await server.close();
  },
);

test('a drain ends what was registered at run time too, and refuses to register more', LIMIT, async (t) => {
  const server = await start(t);
  await server.models.register({ name: 'late', app: ECHO });
  await server.models.scale({ name: 'late' }, { min: 2 }).settled;
  const pids = [...pidsOf(server, 'late'), ...pidsOf(server, 'echo')];
  const closed = server.close();
  await assert.rejects(server.models.register({ name: 'later', app: ECHO }), { code: 'SERVE_SHUTTING_DOWN' });
  assert.equal((await closed).reason, 'drained');
  assert.deepEqual([pids.length, pids.filter(isAlive)], [3, []]);
});

const MISTAKES: readonly (readonly [what: string, given: object, says: RegExp])[] = [
  ['no name', { app: ECHO }, /^register\(\{ name: undefined \}\): the name: undefined is not allowed/],
  ['no app', { name: 'x' }, /^register\(\{ app \}\): undefined is not allowed; give the path of the app/],
  [
    'an app that is not there',
    { name: 'x', app: './none.mjs' },
    /^register\(\{ name: "x" \}\): \.\/none\.mjs: no such file/,
  ],
  [
    'an option of the server',
    { name: 'x', app: ECHO, port: 1 },
    /^register\(\{ port \}\): this option belongs to the server/,
  ],
  ['a bad version', { name: 'x', app: ECHO, version: '1/2' }, /version: "1\/2" is not allowed/],
];
test('a mistake in what is registered is an error and registers nothing', LIMIT, async (t) => {
  const server = await start(t);
  for (const [what, given, message] of MISTAKES)
    await assert.rejects(server.models.register(given as never), { code: 'SERVE_CONFIG', message }, what);
  await assert.rejects(server.models.register({ name: 'echo', app: ECHO }), { code: 'SERVE_MODEL_CONFLICT' });
  assert.deepEqual(
    server.models.describe().map(({ name }) => name),
    ['echo'],
  );
  await server.close();
});

test(
  'an operation on models that is given no model, or no options, names itself and what it takes',
  LIMIT,
  async (t) => {
    const { models } = await start(t);
    for (const [operation, ask] of [
      ['scale', (ref: never) => models.scale(ref, { min: 1 })],
      ['unregister', (ref: never) => models.unregister(ref)],
      ['setDefault', (ref: never) => models.setDefault(ref)],
      ['describe', (ref: never) => models.describe(ref)],
    ] as const) {
      for (const ref of [null, 'echo', { version: '1' }] as readonly unknown[] as readonly never[]) {
        const message = new RegExp(
          `^${operation}\\(model\\): .* is not allowed; give a name and an optional version`,
        );
        assert.throws(() => ask(ref), { code: 'SERVE_CONFIG', message }, operation);
      }
    }
    const ref = { name: 'echo' };
    const message = /^\w+\(model, options\): null is not allowed; give an object, or nothing/;
    assert.throws(() => models.scale(ref, null as never), { code: 'SERVE_CONFIG', message });
    assert.throws(() => models.unregister(ref, null as never), { code: 'SERVE_CONFIG', message });
    await assert.rejects(models.replace({ ...ref, app: ECHO }, null as never), {
      code: 'SERVE_CONFIG',
      message,
    });
    assert.equal(models.describe(ref)[0]?.state, 'ready');
  },
);

test(
  'an app is tested by itself, whatever other models and store of jobs the config file names',
  LIMIT,
  async (t) => {
    const cwd = mkdtempSync(join(tmpdir(), 'banana-models-'));
    t.after(() => rmSync(cwd, { recursive: true }));
    writeFileSync(join(cwd, 'banana.json'), JSON.stringify({ models: { other: ECHO }, jobs: 'local' }));
    const server = await startTestServer({ app: ECHO, cwd, gpus: 'none' }, '');
    t.after(() => server.kill());
    assert.deepEqual(
      server.models.describe().map(({ name }) => name),
      ['echoes'],
    );
    assert.deepEqual(readdirSync(cwd), ['banana.json'], 'its jobs are in memory');
    await server.close();
  },
);

test(
  'twenty clients that register, scale, call and unregister one model leave nothing behind',
  { ...LIMIT, skip: process.platform !== 'linux' && 'reads /proc' },
  async (t) => {
    const server = await start(t);
    await modelStorm(server, { app: ECHO, name: 'storm', clients: 2, ms: 500 }); // loads what is loaded once
    const before = await calmHoldings();
    const { accepted, answers, surprises } = await modelStorm(server, {
      app: ECHO,
      name: 'storm',
      clients: 20,
      ms: 1500,
    });
    t.diagnostic(JSON.stringify({ accepted, answers }));
    assert.deepEqual(surprises, []);
    for (const operation of ['register', 'scale', 'unregister'])
      assert.ok((accepted[operation] ?? 0) > 0, operation);
    assert.deepEqual(
      Object.keys(answers).filter((status) => !['200', '404', '503'].includes(status)),
      [],
    );
    await untilNothingHasGrown(before);
    assert.deepEqual(
      server.models.describe().map(({ name, state }) => [name, state]),
      [['echo', 'ready']],
    );
    await server.close();
  },
);
