/** A server of a model store: what it begins with, what it leaves out, and what never ends it. */
import assert from 'node:assert/strict';
import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, test, type TestContext } from 'node:test';
import { planServer } from '../../supervisor/plan/plan-server.js';
import { editedApp } from '../helpers/edited-app.js';
import type { Described } from '../helpers/managed-server.js';
import { startHere } from '../helpers/here.js';
import { call, runCommand, type Answer, type Server, type StartOptions } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const READY_LINE = 'Model server started.\n';

/** An app that answers with its name. */
function saying(who: string): string {
  return `export const inference = () => ({ who: ${JSON.stringify(who)} });`;
}

/** A store of models whose texts these are, below a folder with an `app.ts` that no option names. */
function storeOf(t: TestContext, models: Readonly<Record<string, string>>): string {
  const files = Object.entries(models).map(([path, text]) => [`store/${path}`, text] as const);
  const { folder } = editedApp(t, {
    'app.ts': 'throw new Error("app.ts must not be loaded");',
    'store/.keep': '',
    ...Object.fromEntries(files),
  });
  return folder;
}

/** A server of the store, without an app. */
async function serveStore(
  t: TestContext,
  folder: string,
  args: readonly string[],
  options: StartOptions = {},
): Promise<Server> {
  const all = ['--model-store', 'store', '--management-port', '0', '--drain-lag', '0s', ...args];
  const server = await startHere(null, { t, args: all, cwd: folder, ...options });
  await server.untilPrinted(READY_LINE);
  await server.untilPrinted('the management API is on'); // its address, which `manage` reads
  return server;
}

async function whoIs({ url }: Server, name: string): Promise<unknown> {
  const answer = await call(`${url}/models/${name}/`, '{}');
  return answer.status === 200 ? answer.json<{ who: string }>().who : answer.status;
}

/** A folder with a manifest. */
function versionOf(folder: string, modelName: string, modelVersion: string): Record<string, string> {
  const model = { modelName, handler: 'service.mjs:handle', modelVersion };
  return {
    [`${folder}/MAR-INF/MANIFEST.json`]: JSON.stringify({ model }),
    [`${folder}/service.mjs`]: `export const handle = (data) => data && data.map(() => '${modelName} ${modelVersion} of ${folder}');`,
  };
}

async function namesOf(server: Server): Promise<string[]> {
  return (await server.status()).models.map(({ name }) => name);
}

/** Asks the management API: `POST`, `?url=m`. */
function manage({ stderr }: Server, method: string, path: string): Promise<Answer> {
  const url = /the management API is on (\S+)/.exec(stderr())?.[1] as string;
  return call(`${url}/models${path}`, null, {}, { method });
}

async function managedNames(server: Server): Promise<string[]> {
  const { models } = (await manage(server, 'GET', '')).json<{ models: { modelName: string }[] }>();
  return models.map(({ modelName }) => modelName);
}

/** Says by which of its exports it answers, and where it works. */
const HANDLES =
  'export const handle = (data, context) => data?.map(() => ({ by: "handle", dir: context.systemProperties.model_dir })) ?? null;';
const CLASSES = `
  class Helper {}
  export class Predictor { initialize() {} handle(data) { return data.map(() => ({ by: "Predictor" })); } }
  export class Other { initialize() {} handle(data) { return data.map(() => ({ by: "Other" })); } }`;

const predict = async ({ url }: Server, name: string): Promise<unknown> =>
  (await call(`${url}/predictions/${name}`, '{}')).json();

describe('a server of a model store without an app', LIMIT, () => {
  test('serves every model in the store, and announces itself on stdout', async (t) => {
    const folder = storeOf(t, {
      'digits/app.ts': saying('digits'),
      'res-net.v2/lib/labels.ts': 'export const who = "resnet";',
      'res-net.v2/index.mjs': 'export { inference } from "./other.mjs";',
      'res-net.v2/other.mjs': saying('resnet'),
      'words.mjs': saying('words'),
      '.hidden/app.ts': 'throw new Error("hidden files must not be loaded");',
      'handles/service.mjs': HANDLES,
      'single.mjs': HANDLES,
      'bad/service.mjs': '',
      'two/service.mjs': CLASSES,
      ...versionOf('m-new', 'm', '2.0'),
      ...versionOf('m-old', 'm', '1.5'),
      ...versionOf('m-same', 'm', '2.0'),
    });
    const server = await serveStore(t, folder, ['--models', 'all']);
    const isBad = (name: string): boolean => name === 'bad' || name === 'two';
    const { models } = await server.until((status) =>
      status.models.every(({ name, state }) => isBad(name) || state === 'ready'),
    );
    await t.test('each has its name', async () => {
      assert.deepEqual(
        models.map(({ name }) => name),
        ['bad', 'digits', 'handles', 'm', 'm', 'res_net_v2', 'single', 'two', 'words'],
      );
      for (const [name, said] of [
        ['digits', 'digits'],
        ['res_net_v2', 'resnet'],
        ['words', 'words'],
      ] as const)
        assert.equal(await whoIs(server, name), said);
    });

    await t.test('every version of a model that lies there; the first one is the default', async () => {
      const shown = models
        .filter(({ name }) => name === 'm')
        .map(({ name, version, isDefaultVersion }) => [name, version, isDefaultVersion]);
      assert.deepEqual(shown, [
        ['m', '2.0', true],
        ['m', '1.5', false],
      ]);
      for (const [path, said] of [
        ['m', 'm 2.0 of m-new'],
        ['m/1.5', 'm 1.5 of m-old'],
        ['m/2.0', 'm 2.0 of m-new'],
      ])
        assert.equal((await call(`${server.url}/predictions/${path}`, '1')).text, said);
      await server.untilPrinted('--models all: there is already a model m@2.0');
      assert.equal((await manage(server, 'PUT', '/m/1.5/set-default')).status, 200);
      assert.equal((await call(`${server.url}/predictions/m`, '1')).text, 'm 1.5 of m-old');
    });

    await t.test('a custom service, or an app if it has `inference`', async () => {
      const dir = `${folder}/store`;
      assert.deepEqual(await predict(server, 'handles'), { by: 'handle', dir: `${dir}/handles` });
      assert.deepEqual(await predict(server, 'single'), { by: 'handle', dir });
      assert.deepEqual(await predict(server, 'words'), { who: 'words' });
    });

    await t.test(
      'one whose workers cannot start, or whose file may mean several things, is 503',
      async () => {
        await server.untilPrinted('service.mjs:1: no handler');
        for (const name of ['bad', 'two']) {
          await server.untilPrinted(`${name}: no worker could start`);
          assert.equal(await whoIs(server, name), 503);
          assert.equal((await call(`${server.url}/predictions/${name}`, '{}')).status, 503);
        }
      },
    );
    assert.equal(server.stdout(), READY_LINE);
    await server.stop();
  });

  test('serves the models that are named, beside those of --model, and leaves out what it cannot find or serve, with a reason', async (t) => {
    const folder = storeOf(t, {
      'zoo/cats/service.mjs': saying('cats'),
      'dogs.mjs': saying('dogs'),
      'birds.mjs': saying('birds'),
      'fish.mjs': 'throw new Error("fish must not be loaded");',
      'late.mjs': saying('late'),
      'labels.json': '',
      'dogs/app.mjs': saying('twin'),
      '../other/app.mjs': saying('other'),
    });
    const args = [
      '--models',
      'felis=zoo/cats,dogs.mjs',
      '--models',
      'birds.mjs,gone,../app.ts,labels.json,dogs,http://127.0.0.1:9/x.mar',
      '--model',
      'other=./other',
    ];
    const server = await serveStore(t, folder, args);
    await server.until(({ state }) => state === 'ready');
    assert.deepEqual(await namesOf(server), ['other', 'felis', 'dogs', 'birds']);
    assert.equal(await whoIs(server, 'felis'), 'cats');
    assert.equal(await whoIs(server, 'other'), 'other');
    assert.equal(await whoIs(server, 'dogs'), 'dogs');
    for (const said of [
      '--models gone: Model not found in model store: gone; it is left out',
      '--models ../app.ts: Relative path is not allowed in url: ../app.ts; it is left out',
      '--models labels.json: labels.json: it is neither a zip archive nor a gzip-compressed tar archive',
      '--models dogs: there is already a model dogs; give one of the two another name with name=path, or another version in its manifest; it is left out',
      'x.mar: not allowed (allowed_urls); it is left out',
    ])
      await server.untilPrinted(said);

    await t.test(
      'the models of the start, however they were named, and those registered later are one set',
      async () => {
        assert.deepEqual(await managedNames(server), ['birds', 'dogs', 'felis', 'other']);
        assert.equal((await manage(server, 'POST', '?url=late.mjs&initial_workers=1')).status, 200);
        assert.deepEqual(
          [await managedNames(server), await whoIs(server, 'late')],
          [['birds', 'dogs', 'felis', 'late', 'other'], 'late'],
        );
        assert.equal((await manage(server, 'DELETE', '/other')).status, 200);
        assert.deepEqual(await managedNames(server), ['birds', 'dogs', 'felis', 'late']);
        assert.deepEqual((await namesOf(server)).sort(), ['birds', 'dogs', 'felis', 'late']);
      },
    );
    await server.stop();
  });

  test('starts without any model if none is named', async (t) => {
    const folder = storeOf(t, {
      'm/labels.json': '[]',
      '../secret/service.mjs': saying('secret'),
      'runs/service.mjs': 'export const run = (data) => data?.map(() => "ran") ?? null;',
    });
    symlinkSync('../secret', `${folder}/store/away`);
    symlinkSync('../../secret/service.mjs', `${folder}/store/m/service.mjs`);
    const server = await serveStore(t, folder, []);
    assert.deepEqual(await namesOf(server), []);

    await t.test('nothing outside the store can be had: neither by a path nor by a link', async () => {
      const refused = {
        '../secret': 404,
        [`${folder}/secret`]: 404,
        away: 404,
        'away/service.mjs': 404,
        m: 400,
      };
      for (const [url, status] of Object.entries(refused)) {
        const answer = await manage(server, 'POST', `?initial_workers=1&url=${encodeURIComponent(url)}`);
        assert.equal(answer.status, status, url);
      }
      assert.equal(
        (await manage(server, 'POST', '?initial_workers=1&url=m&handler=../../secret/service')).status,
        400,
      );
      assert.deepEqual(await namesOf(server), []);
    });

    await t.test(
      'a handler is looked for when a worker starts: without workers it is registered, with them refused',
      async () => {
        const register = (name: string, handler: string, workers: number) =>
          manage(
            server,
            'POST',
            `?url=runs&model_name=${name}&handler=${handler}&initial_workers=${workers}`,
          );
        assert.equal((await register('good', 'service.py:run', 1)).status, 200);
        assert.equal((await call(`${server.url}/predictions/good`, '{}')).text, 'ran');
        for (const handler of ['gone:handle', 'service.py:gone']) {
          assert.equal((await register('later', handler, 0)).status, 200, handler);
          const started = await manage(server, 'PUT', '/later?min_worker=1&synchronous=true');
          assert.equal(started.status, 500, handler);
          assert.equal(started.json<{ message: string }>().message, 'Failed to start workers');
          const [worker] = (await manage(server, 'GET', '/later')).json<Described>().workers;
          assert.match(worker?.lastError ?? '', /gone/, handler);
          await server.untilPrinted(worker?.lastError ?? 'no reason'); // in the log, too
          assert.equal((await manage(server, 'DELETE', '/later')).status, 200);
        }
      },
    );
    await server.stop();
  });

  test('stays when none of its models can start', async (t) => {
    const folder = storeOf(t, { 'broken.mjs': 'throw new Error("broken on purpose");' });
    const options = { expectedRestarts: 1 }; // it is tried again once, and fails in the same way
    const server = await serveStore(t, folder, ['--models', 'all'], options);
    await server.untilPrinted('broken: no worker could start');
    await server.untilPrinted('Staying up and answering 503');
    assert.equal(await whoIs(server, 'broken'), 503);
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });
});

describe('a server of an app with a model store', LIMIT, () => {
  test('has the models of the store beside its app', async (t) => {
    const folder = storeOf(t, { 'words.mjs': saying('words'), '../mine.mjs': saying('mine') });
    const args = ['--model-store', 'store', '--models', 'all', '--management-port', '0', '--drain-lag', '0s'];
    const server = await startHere('./mine.mjs', { t, args, cwd: folder });
    await server.until(({ state }) => state === 'ready');
    assert.deepEqual((await call(server.url, '{}')).json(), { who: 'mine' });
    assert.equal(await whoIs(server, 'words'), 'words');
    assert.equal(server.stdout(), '', 'the ready line is that of a server without an app');
    await server.stop();
  });

  test('refuses to start if a model that is named is not there', async (t) => {
    const folder = storeOf(t, { '../mine.mjs': saying('mine') });
    const args = ['./mine.mjs', '--port', '0', '--model-store', 'store', '--models', 'words'];
    const command = runCommand(args, { t, cwd: folder });
    assert.equal((await command.ended).code, 2);
    assert.equal(command.stderr(), 'banana-serve: --models words: Model not found in model store: words\n');
  });
});

test('the store and its models may stand in the config file and in the environment', LIMIT, async (t) => {
  const folder = storeOf(t, { 'a.mjs': saying('a'), 'b.mjs': saying('b'), 'c.mjs': saying('c') });
  const config = {
    modelStore: './store',
    models: ['a.mjs', 'bees=b.mjs'],
    managementPort: 0,
    drainLag: '0s',
  };
  const { folder: cwd, save } = editedApp(t, { 'banana.json': JSON.stringify(config) });
  save('banana.json', JSON.stringify({ ...config, modelStore: `${folder}/store` }));
  const fromFile = await startHere(null, { t, cwd });
  assert.deepEqual(await namesOf(fromFile), ['a', 'bees']);
  await fromFile.until(({ state }) => state === 'ready');
  await fromFile.stop();
  process.env['BANANA_MODELS'] = 'c.mjs';
  t.after(() => delete process.env['BANANA_MODELS']);
  const fromEnvironment = await planServer({ cwd }, {});
  fromEnvironment.store.close();
  assert.deepEqual(
    fromEnvironment.models.map(({ spec }) => spec.name),
    ['c'],
  );
});

test(
  'with --watch, a change of one model of the store starts that model again, and no other',
  LIMIT,
  async (t) => {
    const folder = storeOf(t, {
      'one/src/handler.mjs': saying('one'),
      'one/index.mjs': 'export { inference } from "./src/handler.mjs";',
      'two/app.mjs': saying('two'),
      'three.mjs': saying('three'),
      'four.mjs': saying('four'),
      'lib/three.mjs': saying('three, again'),
    });
    const server = await serveStore(t, folder, ['--models', 'one,two,three.mjs,four.mjs', '--watch']);
    const pidsOf = async (): Promise<Record<string, number | null | undefined>> => {
      const { models } = await server.until(({ models }) => models.every(({ state }) => state === 'ready'));
      return Object.fromEntries(models.map(({ name, workers }) => [name, workers[0]?.pid]));
    };
    const before = await pidsOf();
    const save = (path: string, text: string): void => {
      writeFileSync(`${folder}/store/${path}~`, text);
      renameSync(`${folder}/store/${path}~`, `${folder}/store/${path}`); // in one step, so that the watch sees one change
    };
    save('one/src/handler.mjs', saying('one, again'));
    await server.untilPrinted('src/handler.mjs changed: starting the workers of one again');
    assert.equal(await whoIs(server, 'one'), 'one, again');
    const then = await pidsOf();
    assert.notEqual(then['one'], before['one']);
    assert.deepEqual({ ...then, one: null }, { ...before, one: null });

    save('three.mjs', 'export { inference } from "./lib/three.mjs";');
    await server.untilPrinted('three.mjs changed: starting the workers of three again');
    assert.equal(await whoIs(server, 'three'), 'three, again');
    const last = await pidsOf();
    assert.notEqual(last['three'], then['three']);
    assert.deepEqual({ ...last, three: null }, { ...then, three: null });

    save('lib/three.mjs', saying('three, by what it imports'));
    await server.untilPrinted('lib/three.mjs changed: starting the workers of three again');
    assert.equal(await whoIs(server, 'three'), 'three, by what it imports');
    assert.deepEqual({ ...(await pidsOf()), three: null }, { ...then, three: null });
    await server.stop();
  },
);
