/** One server, several models: who answers what, and what one model's trouble is to the others. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { endOf, startJob } from '../helpers/potassium.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, fixture, runCommand, type Answer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** An error that may pass by itself: it is tried again, up to the limit. */
const PASSING = { ERROR_CODE: 'ECONNREFUSED' };

function ask({ url }: Server, path: string, input: unknown = {}): Promise<Answer> {
  return call(`${url}${path}`, JSON.stringify(input));
}

async function get({ url }: Server, path: string): Promise<readonly [status: number, text: string]> {
  const response = await fetch(`${url}${path}`);
  return [response.status, await response.text()];
}

/** `--model name=path` for each. */
function modelArgs(models: Readonly<Record<string, string>>): string[] {
  return Object.entries(models).flatMap(([name, app]) => ['--model', `${name}=${app}`]);
}

/** A folder with a config file, removed when the test ends. */
function configFolder(t: TestContext, config: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-models-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'banana.json'), JSON.stringify(config));
  return folder;
}

withOneRuntime(({ app }) => {
  test('among several models each line of a worker and of a call names its model', LIMIT, async (t) => {
    const args = [...modelArgs({ echo: app('echoes'), kill: app('killable') }), '--access-log'];
    const server = await startHere(null, { t, args, expectedRestarts: 1 });
    await server.until(({ state }) => state === 'ready');
    for (const name of ['echo', 'kill']) await server.untilPrinted(`worker ${name}/0 is ready`);
    assert.equal((await ask(server, '/models/kill/', { dies: 'SIGKILL' })).status, 500);
    await server.untilPrinted(/POST \/models\/kill\/ .*"model":"kill"/);
    await server.untilPrinted(/worker kill\/0 died \(signal SIGKILL\) while running call/);
    await server.until(({ models }) => models.every(({ state }) => state === 'ready'));
    await server.stop();
  });
});

withOneRuntime(({ app, potassium }) => {
  test(
    'models that have names answer at /models/<name>/ with their own routes, and / is 404 that names them',
    LIMIT,
    async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'banana-models-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      writeFileSync(join(folder, 'app.ts'), 'throw new Error("app.ts must not be loaded");');
      const args = modelArgs({ echo: app('echoes'), paths: app('named-paths') });
      const server = await startHere(null, { t, args, cwd: folder });
      await server.until(({ state }) => state === 'ready');
      assert.deepEqual((await ask(server, '/models/echo/', { a: 1 })).json(), { a: 1 });
      assert.deepEqual((await ask(server, '/models/paths/')).json(), { route: '/' });
      assert.deepEqual((await ask(server, '/models/paths/plain')).json(), { route: '/plain' });
      const none = await ask(server, '/');
      assert.equal(none.status, 404);
      assert.match(errorOf(none).message, /\/models\/echo\/, \/models\/paths\/\.$/);
      assert.equal(errorOf(await ask(server, '/models/echo/plain')).code, 'SERVE_NOT_FOUND');
      const unknown = await ask(server, '/models/eco/');
      assert.deepEqual([unknown.status, errorOf(unknown).code], [404, 'SERVE_MODEL_NOT_FOUND']);
      assert.match(errorOf(unknown).message, /this server has echo, paths\.$/);
      const { model, models } = await server.status();
      assert.deepEqual(model, models[0], 'without a model on /, status shows the first as the one');
      assert.deepEqual(
        models.map(({ name, version, state, loadedAtStartup }) => [name, version, state, loadedAtStartup]),
        [
          ['echo', '1', 'ready', true],
          ['paths', '1', 'ready', true],
        ],
      );
      await server.stop();
    },
  );

  test(
    'the app on the command line keeps / beside other models, and has its name besides; a job names its model',
    LIMIT,
    async (t) => {
      const args = [...modelArgs({ echo: app('echoes'), later: potassium() }), '--name', 'first'];
      const server = await startHere(potassium(), { t, args, env: makeCues(t).env });
      await server.until(({ state }) => state === 'ready');
      const answer = await ask(server, '/', { a: 1 });
      assert.equal(answer.status, 200, answer.text);
      const { pid } = answer.json<{ pid: number }>();
      assert.deepEqual((await ask(server, '/models/first/', { a: 1 })).json<{ pid: number }>().pid, pid);
      assert.deepEqual((await ask(server, '/models/echo/', { b: 2 })).json(), { b: 2 });
      const { model, models } = await server.status();
      assert.deepEqual([model.name, models.map(({ name }) => name)], ['first', ['first', 'echo', 'later']]);
      for (const [path, name] of [
        ['/later', 'first'],
        ['/models/later/later', 'later'],
      ] as const) {
        const job = await endOf(server, await startJob(server, path, {}));
        assert.deepEqual([job.model, job.version, job.route], [name, '1', '/later']);
      }
      await server.stop();
    },
  );

  test(
    'a model that crash-loops takes nothing from the others: they answer, the server is ready, the rest is named',
    LIMIT,
    async (t) => {
      const args = [
        ...modelArgs({ echo: app('echoes'), bad: app('throws-in-init') }),
        ...['--restart-limit', '2', '--on-crash-loop', 'exit'],
      ];
      const server = await startHere(null, { t, args, env: PASSING, expectedRestarts: 2 });
      const held = ask(server, '/models/bad/');
      await server.until(({ models }) => models[0]?.state === 'ready');
      assert.deepEqual((await ask(server, '/models/echo/', 1)).json(), 1);
      assert.equal((await held).status, 503);
      assert.equal(errorOf(await held).code, 'SERVE_NOT_READY');
      assert.deepEqual(await get(server, '/readyz'), [
        200,
        '{"state":"ready","notReady":{"bad":"unhealthy"}}',
      ]);
      assert.deepEqual(await get(server, '/readyz/echo'), [200, '{"state":"ready","model":"echo"}']);
      const [status, text] = await get(server, '/readyz/bad');
      assert.equal(status, 503);
      assert.match(text, /^\{"state":"unhealthy","model":"bad","reason":"No worker .*send it SIGHUP\."\}$/);
      assert.equal((await get(server, '/readyz/eco'))[0], 404);
      assert.deepEqual((await ask(server, '/models/echo/', 2)).json(), 2);
      await server.untilPrinted(/bad: no worker could start; .*answering 503 for this model/);
      await server.stop();
    },
  );

  test(
    'a model whose worker dies while first loads of another one hold all places is served again; what waits says for what',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const models = { echo: app('echoes'), slow: { app: app('works'), workers: 3 } };
      const args = ['--spawn-concurrency', '2'];
      const cwd = configFolder(t, { models });
      const server = await startHere(null, { t, args, cwd, env: cues.env, expectedRestarts: 1 });
      const { models: before } = await server.until(
        ({ models: [echo, slow] }) =>
          echo?.state === 'ready' &&
          slow?.workers.filter(({ state }) => state === 'initializing').length === 2,
      );
      const reason = '2 workers of its own model to become ready (--spawn-concurrency 2)';
      assert.equal(before[1]?.workers[2]?.waitsFor, reason);
      await server.untilPrinted(`worker slow/2 waiting for ${reason} for `);
      const pid = before[0]?.workers[0]?.pid as number;
      process.kill(pid, 'SIGKILL');
      await server.until(({ models: [echo] }) => echo?.state === 'ready' && echo.workers[0]?.pid !== pid);
      assert.deepEqual((await ask(server, '/models/echo/', 1)).json(), 1);
      cues.give('init may end');
      await server.until(
        ({ models: [, slow] }) => slow?.workers.every(({ state }) => state === 'idle') === true,
      );
      await server.stop();
    },
  );

  test(
    'a server none of whose models can start ends with 3, once its callers are answered',
    LIMIT,
    async (t) => {
      const args = [
        ...modelArgs({ a: app('throws-in-init'), b: app('throws-in-init') }),
        '--restart-limit',
        '1',
      ];
      const server = await startHere(null, { t, args, env: PASSING });
      const held = await Promise.all([ask(server, '/models/a/'), ask(server, '/models/b/')]);
      for (const answer of held) assert.equal(errorOf(answer).code, 'SERVE_NOT_READY', answer.text);
      assert.deepEqual(await server.ended, { code: 3, signal: null });
    },
  );

  test(
    '/readyz waits for every model that the server starts with; a drain answers the calls of every model, then ends all workers',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const args = modelArgs({ a: app('works'), b: app('works') });
      const server = await startHere(app('echoes'), { t, args, env: cues.env });
      await server.until(({ models }) => models[0]?.state === 'ready');
      assert.deepEqual(await get(server, '/readyz'), [
        503,
        '{"state":"starting","notReady":{"a":"starting","b":"starting"}}',
      ]);
      assert.deepEqual((await ask(server, '/models/echoes/', 1)).json(), 1, 'named by its file, it answers');
      cues.give('init may end');
      await server.until(({ state }) => state === 'ready');
      assert.deepEqual(await get(server, '/readyz'), [200, '{"state":"ready"}']);
      const calls = ['a', 'b'].map((name) => ask(server, `/models/${name}/`, { until: 'go' }));
      await server.until(({ models }) =>
        models.slice(1).every(({ workers }) => workers[0]?.state === 'busy'),
      );
      const stopped = server.stop();
      await server.untilPrinted(/waits for 2 calls running, [23] workers? to stop/);
      cues.give('go');
      for (const answer of await Promise.all(calls)) assert.equal(answer.status, 200);
      assert.deepEqual(await stopped, { code: 0, signal: null });
    },
  );

  test(
    'the config file names models with options of their own, over the defaults that flags give all of them, and the app on /',
    LIMIT,
    async (t) => {
      const folder = configFolder(t, {
        app: app('echoes'),
        name: 'main',
        models: {
          echo: app('echoes'),
          two: { app: app('works'), version: '2.1', workers: 2, queueSize: 7 },
        },
      });
      const args = ['--queue-size', '5', ...modelArgs({ flag: app('echoes') })];
      const server = await startHere(null, { t, args, cwd: folder });
      const { models } = await server.until(({ state }) => state === 'ready');
      assert.deepEqual(
        models.map(({ name, version, workers, queue }) => [name, version, workers.length, queue.maxCalls]),
        [
          ['main', '1', 1, 5],
          ['flag', '1', 1, 5],
          ['echo', '1', 1, 5],
          ['two', '2.1', 2, 7],
        ],
      );
      for (const path of ['/', '/models/main/', '/models/echo/'])
        assert.deepEqual((await ask(server, path, 1)).json(), 1);
      await server.until((status) =>
        status.models.every(({ workers }) => workers.every(({ pid }) => pid !== null)),
      );
      await server.stop();
    },
  );
});

test('a mistake ends the command with exit code 2 before anything starts', LIMIT, async (t) => {
  const ECHO = fixture('echoes.mjs');
  const cwd = configFolder(t, { models: { a: ECHO } });
  const command = runCommand(['--model', `a=${ECHO}`], { t, cwd });
  assert.deepEqual(await command.ended, { code: 2, signal: null });
  assert.equal(
    command.stderr(),
    `banana-serve: banana.json: models.a and --model a=${ECHO} are two models with the same name; rename one.\n`,
  );
});
