/** A container of SageMaker: the argument `serve`, its environment, its folders, many models, and AWS's own client. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { appFolder } from '../worker/app-folder.js';
import { holdPort } from '../helpers/held-port.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { folderOfTarget, startPlatform, type InvokeError } from '../helpers/sagemaker.js';
import { ROOT, call, runCommand, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** Puts an app where SageMaker puts a model. */
function place(app: string, base: string, folder: string): void {
  mkdirSync(join(base, folder), { recursive: true });
  cpSync(app, join(base, folder, `app${extname(app)}`));
}

/** The list behind an instruction of the page's Dockerfile. */
function listOf(instruction: string): string[] {
  const [, list = ''] = new RegExp(`^${instruction} (\\[.*\\])$`, 'm').exec(PAGE) ?? [];
  return JSON.parse(list) as string[];
}

const PAGE = readFileSync(`${ROOT}docs/sagemaker.md`, 'utf8');
const SERVE = listOf('CMD');

/** Writes what runs the page's ENTRYPOINT in its WORKDIR, which has the packages. */
function imageOf(t: TestContext): string {
  const folder = appFolder(t, {});
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/banana-serve'));
  const run = `#!/bin/sh\ncd "${folder}" && exec ${listOf('ENTRYPOINT').join(' ')} "$@"\n`;
  writeFileSync(join(folder, 'run'), run, { mode: 0o755 });
  return join(folder, 'run');
}

/** Starts the image as SageMaker does. `args`: what stands behind its ENTRYPOINT. */
async function startContainer(
  t: TestContext,
  base: string,
  env: NodeJS.ProcessEnv = {},
  args: readonly string[] = [],
): Promise<Server> {
  const variables = { SAGEMAKER_BASE_DIR: base, SAGEMAKER_BIND_TO_PORT: String(await holdPort()), ...env };
  const all = [...args, '--drain-lag', '0s', ...SERVE];
  const started = { t, isAddressGiven: true, command: imageOf(t), env: variables, args: all };
  return startServer(null, started);
}

const MULTI_MODEL = { SAGEMAKER_MULTI_MODEL: 'true' };

async function ask(server: Server, asked: string, body?: object): Promise<[status: number, json: unknown]> {
  const [method = '', path = ''] = asked.split(' ');
  const sent = body === undefined ? null : JSON.stringify(body);
  const answer = await call(server.url + path, sent, { 'content-type': 'application/json' }, { method });
  return [answer.status, answer.json()];
}

withEachRuntime(({ app }) => {
  test('serve answers with the model of the folder, and attributes pass both ways', LIMIT, async (t) => {
    const base = appFolder(t, {});
    place(app('sagemaker'), base, 'model');
    const server = await startContainer(t, base);
    await server.until(({ state }) => state === 'ready');
    const { invoke } = await startPlatform(t, server.url, base);
    assert.deepEqual(await invoke({ text: 'hi' }, { CustomAttributes: 'trace=1' }), {
      json: { text: 'HI', target: null },
      type: 'application/json',
      attributes: 'given=trace=1',
    });
    assert.deepEqual(await ask(server, 'GET /ping'), [200, { status: 'Healthy' }]);
    assert.equal((await ask(server, 'GET /models'))[0], 404, 'only many models are managed');

    const errorOf = async (input: object): Promise<unknown[]> => {
      const error = await invoke(input).then(
        () => assert.fail('it is refused'),
        (thrown: InvokeError) => thrown,
      );
      const { name, OriginalStatusCode, OriginalMessage = '{}', $metadata } = error;
      const { message } = JSON.parse(OriginalMessage) as { message?: string };
      return [name, $metadata.httpStatusCode, $metadata.attempts, OriginalStatusCode, message];
    };
    const refused = ['ModelError', 424, 1, 422, 'not this text'];
    assert.deepEqual(await errorOf({ refuse: 422 }), refused);
    assert.deepEqual(await errorOf({ fail: true }), ['ModelError', 424, 1, 503, 'Prediction failed']);
    await server.stop();
  });
});

withOneRuntime(({ app }) => {
  describe('many models', LIMIT, () => {
    test('are loaded, called by their target, listed, described and unloaded on the one port', async (t) => {
      const base = appFolder(t, {});
      for (const target of ['a.tar.gz', 'b.tar.gz']) place(app('sagemaker'), base, folderOfTarget(target));
      const server = await startContainer(t, base, MULTI_MODEL);
      assert.deepEqual(await ask(server, 'GET /ping'), [200, { status: 'Healthy' }]);
      assert.deepEqual(await ask(server, 'GET /models'), [200, { models: [] }]);

      const { invoke, told } = await startPlatform(t, server.url, base);
      for (const target of ['a.tar.gz', 'b.tar.gz', 'a.tar.gz'])
        assert.deepEqual((await invoke({ text: 'hi' }, { TargetModel: target })).json, {
          text: 'HI',
          target,
        });
      assert.deepEqual(told, ['POST a.tar.gz 200', 'POST b.tar.gz 200']);

      const url = join(base, folderOfTarget('a.tar.gz'));
      const name = basename(dirname(url));
      const [, listed] = await ask(server, 'GET /models');
      const { models } = listed as { models: { modelName: string; modelUrl: string }[] };
      assert.equal(models.length, 2);
      assert.ok(models.some(({ modelName, modelUrl }) => modelName === name && modelUrl === url));
      const [status, described] = await ask(server, `GET /models/${name}`);
      const { modelName, modelUrl, workers } = described as { workers: object[] } & (typeof models)[0];
      assert.deepEqual([status, modelName, modelUrl, workers.length], [200, name, url, 1]);

      for (const target of ['a.tar.gz', 'b.tar.gz']) {
        const again = { model_name: name, url: join(base, folderOfTarget(target)) };
        assert.equal((await ask(server, 'POST /models', again))[0], 409, target);
      }
      assert.equal((await ask(server, `DELETE /models/${name}`))[0], 200);
      assert.equal((await ask(server, `DELETE /models/${name}`))[0], 404);
      assert.equal((await ask(server, `POST /models/${name}/invoke`, { text: 'hi' }))[0], 404);
      await server.stop();
    });

    test('come from folders below their own only', async (t) => {
      const base = appFolder(t, {
        'models/file.mjs': '',
        'beside/app.mjs': 'export const inference = () => 1;',
      });
      symlinkSync(join(base, 'beside'), join(base, 'models/out'));
      const server = await startContainer(t, base, MULTI_MODEL);
      for (const url of [
        'file.mjs',
        '/beside',
        '/models/../beside',
        '/models/out',
        '/models/file.mjs',
        '/none',
      ])
        for (const path of [url, base + url])
          assert.equal((await ask(server, 'POST /models', { model_name: 'm', url: path }))[0], 404, path);
      assert.deepEqual(await ask(server, 'GET /models'), [200, { models: [] }]);
      await server.stop();
    });

    test('leave the container alone while one is loaded or cannot be', async (t) => {
      const base = appFolder(t, { 'models/m/model/app.mjs': 'throw new Error("no weights");' });
      const server = await startContainer(t, base, MULTI_MODEL);
      const url = `${base}/models/m/model`;
      for (const [wish, status] of [
        [{}, 500],
        [{ synchronous: false }, 202],
      ] as const)
        assert.equal((await ask(server, 'POST /models', { model_name: 'm', url, ...wish }))[0], status);
      await server.untilPrinted(/no weights/);
      assert.equal((await ask(server, 'GET /ping'))[0], 200);
      // Until it has given up, a restart may be counted at any moment.
      const { models } = await server.until((status) => status.models[0]?.workers[0]?.state === 'latched');
      await server.stop('SIGINT', models[0]?.workers[0]?.restarts);
    });

    const skip = process.platform !== 'linux' && 'only Linux tells how much memory processes share';
    test('for which there is no memory are 507, until others are unloaded', { skip }, async (t) => {
      const text = `let held;
        export const init = () => void (held = Buffer.alloc(100 * 2 ** 20, 1));
        export const inference = () => held.length;`;
      const targets = ['a.tar.gz', 'b.tar.gz'];
      const base = appFolder(
        t,
        Object.fromEntries(targets.map((target) => [`${folderOfTarget(target)}/app.mjs`, text])),
      );
      const server = await startContainer(t, base, MULTI_MODEL, ['--memory-budget', '180mb']);
      const { invoke, told } = await startPlatform(t, server.url, base);
      for (const TargetModel of [...targets, ...targets])
        assert.equal((await invoke({}, { TargetModel })).json, 100 * 2 ** 20);
      const [a, b] = targets;
      const swapped = (now: string, then: string): string[] => [
        `POST ${now} 507`,
        `DELETE ${then} 200`,
        `POST ${now} 200`,
      ];
      assert.deepEqual(told, [
        `POST ${a} 200`,
        ...swapped(`${b}`, `${a}`),
        ...swapped(`${a}`, `${b}`),
        ...swapped(`${b}`, `${a}`),
      ]);
      await server.stop();
    });
  });

  test('an app of the image is served, on the port of a flag', LIMIT, async (t) => {
    const port = String(await holdPort());
    const second = ['--metrics-port', '0'];
    const range = { SAGEMAKER_SAFE_PORT_RANGE: '20000-20009' };
    const server = await startContainer(t, appFolder(t, {}), range, [
      app('sagemaker'),
      '--port',
      port,
      ...second,
    ]);
    await server.until(({ state }) => state === 'ready');
    assert.equal(new URL(server.url).port, port);
    assert.equal((await call(`${server.url}/invocations`, '{"text":"hi"}')).status, 200);
    await server.untilPrinted('--metrics-port 0 is not in SAGEMAKER_SAFE_PORT_RANGE 20000-20009');
    await server.stop();
  });

  test('a folder serve is served by its path, and serve says so', LIMIT, async (t) => {
    const cwd = appFolder(t, { 'serve/app.mjs': 'export const inference = () => 1;', 'model/app.mjs': '' });
    const own = await startServer('./serve', { t, cwd });
    assert.equal((await call(own.url, '{}')).text, '1');
    await own.stop();
    const env = { SAGEMAKER_BASE_DIR: '.', SAGEMAKER_BIND_TO_PORT: '0' };
    const { ended, stderr } = runCommand(['serve'], { t, cwd, env });
    assert.equal((await ended).code, 3); // the model of the folder is empty
    assert.match(stderr(), /serve is SageMaker's argument: to serve \.\/serve, write \.\/serve/);
  });

  test('serve without a model says whose argument it is', LIMIT, async (t) => {
    const { ended, stderr } = runCommand(['serve'], { t, env: { SAGEMAKER_BASE_DIR: appFolder(t, {}) } });
    assert.equal((await ended).code, 2);
    assert.match(
      stderr(),
      /serve is SageMaker's argument, and there is no folder .*\/model\. To serve an app, name it/,
    );
  });
});
