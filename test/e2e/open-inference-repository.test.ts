/** The model repository of the Open Inference Protocol: models are loaded from the store, again, and unloaded. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { ServeOptions } from '../../supervisor/plan/given-options.js';
import { holdPort } from '../helpers/held-port.js';
import { cuesFor, startManaged, type ManagedServer } from '../helpers/managed-server.js';
import { eventually, fixture } from '../helpers/server.js';
import { ask, infer, way, type V2Answer } from '../helpers/v2.js';

const LIMIT = { timeout: 240_000 };

const saying = (text: string): string => `export const inference = () => ['${text}'];`;
/** The fixture apps as a store. */
const FIXTURES = { folder: dirname(fixture('works.mjs')) };

const BROKEN = `throw new Error('no weights');`;

interface Store {
  write(files: Readonly<Record<string, string>>): void;
  readonly folder: string;
}

function makeStore(t: TestContext, files: Readonly<Record<string, string>>): Store {
  const folder = mkdtempSync(join(tmpdir(), 'banana-repository-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const write: Store['write'] = (given) => {
    for (const [path, text] of Object.entries(given)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  };
  write(files);
  return { folder, write };
}

class Repository {
  readonly server: ManagedServer;

  constructor(server: ManagedServer) {
    this.server = server;
  }

  static async start(
    t: TestContext,
    { folder }: Pick<Store, 'folder'>,
    options: ServeOptions = {},
  ): Promise<Repository> {
    return new Repository(await startManaged(t, { modelStore: folder, ...options }));
  }

  post(path: string, body: string | Buffer = '', headers: Record<string, string> = {}): Promise<V2Answer> {
    return ask(this.server.managementUrl, `/v2/repository/${path}`, { method: 'POST', body, headers });
  }

  /** Status and error, or the whole answer. */
  async change(what: string, body = ''): Promise<[number, unknown]> {
    const { status, json, error } = await this.post(`models/${what}`, body);
    return [status, error ?? json];
  }

  async index(body = ''): Promise<unknown> {
    return (await this.post('index', body)).json;
  }

  /** The text that the model answers; the error, if there is one. */
  async says(model: string): Promise<unknown> {
    const { error, outputs } = await infer(this.server, `/v2/models/${model}/infer`, { inputs: [] });
    return error ?? outputs['output']?.data[0];
  }
}

test('a model of the store is listed, loaded, called and unloaded', LIMIT, async (t) => {
  const store = makeStore(t, { 'a.mjs': saying('one'), 'b-c.mjs': saying('two') });
  const repository = await Repository.start(t, store);
  const notLoaded = { state: 'UNAVAILABLE', reason: 'not loaded' };
  assert.deepEqual(await repository.index(), [
    { name: 'a', ...notLoaded },
    { name: 'b-c', ...notLoaded },
  ]);
  assert.deepEqual(await repository.change('a/load', '{}'), [200, { name: 'a', load: true }]);
  assert.deepEqual(await repository.change('b-c/load', '{"parameters":{"other":1}}'), [
    200,
    { name: 'b-c', load: true },
  ]);
  assert.deepEqual([await repository.says('a'), await repository.says('b-c')], ['one', 'two']);
  const loaded = { version: '1', state: 'READY', reason: '' };
  assert.deepEqual(await repository.index('{"ready":true}'), [
    { name: 'a', ...loaded },
    { name: 'b-c', ...loaded },
  ]);
  assert.deepEqual(await repository.change('a/unload', '{"parameters":{"unload_dependents":false}}'), [
    200,
    { name: 'a', unload: true },
  ]);
  assert.equal(await repository.says('a'), "Request for unknown model: 'a' is not found");
  assert.deepEqual(await repository.index(), [
    { name: 'b-c', ...loaded },
    { name: 'a', ...notLoaded },
  ]);
  assert.deepEqual(await repository.change('a/unload'), [404, "Request for unknown model: 'a' is not found"]);
});

test('a second load takes what the store has now, and no call is lost meanwhile', LIMIT, async (t) => {
  const store = makeStore(t, { 'a.mjs': saying('one') });
  const repository = await Repository.start(t, store);
  await repository.change('a/load');
  const said = new Set([await repository.says('a')]);
  store.write({ 'a.mjs': saying('two') });
  let isLoading = true;
  const loading = repository.change('a/load').finally(() => (isLoading = false));
  while (isLoading) {
    said.add(await repository.says('a'));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.deepEqual(await loading, [200, { name: 'a', load: true }]);
  said.add(await repository.says('a'));
  assert.deepEqual([...said], ['one', 'two']);
});

test('what cannot start is refused, and what was there before stays', LIMIT, async (t) => {
  const store = makeStore(t, { 'a.mjs': saying('one'), 'new.mjs': BROKEN });
  const repository = await Repository.start(t, store);
  await repository.change('a/load');
  store.write({ 'a.mjs': BROKEN });
  for (const name of ['a', 'new']) {
    const [status, error] = await repository.change(`${name}/load`);
    assert.equal(status, 400);
    assert.match(String(error), new RegExp(`^failed to load '${name}': .*no weights`));
  }
  assert.equal(await repository.says('a'), 'one');
  assert.equal(await repository.says('new'), "Request for unknown model: 'new' is not found");
  store.write({ 'a.mjs': saying('two') });
  assert.equal((await repository.change('a/load'))[0], 200);
  assert.equal(await repository.says('a'), 'two');
});

test('a new version becomes the default, and the one before it in the store ends', LIMIT, async (t) => {
  const version = (number: string): Record<string, string> => ({
    'm/MAR-INF/MANIFEST.json': JSON.stringify({
      model: { modelName: 'm', handler: `v${number}.mjs`, modelVersion: number },
    }),
    [`m/v${number}.mjs`]: saying(number),
  });
  const store = makeStore(t, { ...version('1.0'), 'other.mjs': saying('other') });
  const repository = await Repository.start(t, store);
  await repository.change('m/load');
  await repository.server.manage('POST /models?url=other.mjs&model_name=m&initial_workers=1');
  store.write(version('2.0'));
  assert.deepEqual(await repository.change('m/load'), [200, { name: 'm', load: true }]);
  assert.equal(await repository.says('m'), '2.0');
  const { json } = await ask(repository.server.url, '/v2/models/m');
  assert.deepEqual(json['versions'], ['1', '2.0'], 'the version from another place stays');

  store.write(version('3.0'));
  store.write({ 'm/v3.0.mjs': BROKEN });
  assert.equal((await repository.change('m/load'))[0], 400);
  assert.equal(await repository.says('m'), '2.0');
  assert.deepEqual(await repository.change('m/unload'), [200, { name: 'm', unload: true }]);
  assert.equal(await repository.says('m'), "Request for unknown model: 'm' is not found");
});

test('the models of the start are loaded again from their place in the store', LIMIT, async (t) => {
  const store = makeStore(t, { 'a.mjs': saying('one') });
  const repository = await Repository.start(t, store, { models: 'named=a.mjs' });
  store.write({ 'a.mjs': saying('two') });
  assert.equal((await repository.change('named/load'))[0], 200);
  assert.equal(await repository.says('named'), 'two');
});

test('a model without workers gets one', LIMIT, async (t) => {
  const repository = await Repository.start(t, makeStore(t, { 'a.mjs': saying('one') }));
  await repository.server.manage('POST /models?url=a.mjs&initial_workers=0');
  assert.equal((await repository.change('a/load'))[0], 200);
  assert.equal(await repository.says('a'), 'one');
});

test('loads of one model at a time happen one after the other', LIMIT, async (t) => {
  const repository = await Repository.start(t, makeStore(t, { 'a.mjs': saying('one') }));
  const answers = await Promise.all([1, 2, 3].map(() => repository.change('a/load')));
  assert.deepEqual(
    answers.map(([status]) => status),
    [200, 200, 200],
  );
  assert.equal((await repository.server.describe('a')).workers.length, 1);
});

test('a load that cannot be is refused with the reason', LIMIT, async (t) => {
  const store = makeStore(t, { 'a.mjs': saying('one') });
  const repository = await Repository.start(t, store, { app: fixture('works.mjs') });
  const config = JSON.stringify({ parameters: { config: '{"max_batch_size":"16"}' } });
  const file = (content: string): string => JSON.stringify({ parameters: { 'file:1/model.onnx': content } });
  for (const [name, body, status, text] of [
    ['none', '', 404, /^failed to load 'none': the model store has no such model\.$/],
    [
      'works',
      '',
      409,
      /^failed to load 'works': the server has a model of this name that is not from the store\.$/,
    ],
    ['a', config, 400, /^failed to load 'a': the parameter "config" is not supported/],
    ['a', file('YQ=='), 400, /^failed to load 'a': the parameter "file:1\/model.onnx" is not supported/],
    [
      'a',
      file('A'.repeat(200_000)),
      400,
      /^failed to load 'a': The body has more than 65536 bytes\. Models cannot be sent/,
    ],
    ['a', '[]', 400, /^failed to load 'a': The body must be a JSON object, or empty\.$/],
    ['a', '{"parameters":[]}', 400, /"parameters" must be an object/],
    ['a%20b', '', 400, /A model's name is made of/],
  ] as const) {
    const [got, error] = await repository.change(`${name}/load`, body);
    assert.deepEqual([got, text.test(String(error))], [status, true], String(error));
  }
  assert.equal((await repository.post('index', '{"ready":1}')).status, 400);
  assert.equal(await repository.says('a'), "Request for unknown model: 'a' is not found");
});

test('an unload answers when the running calls and the workers have ended', LIMIT, async (t) => {
  const cues = cuesFor(t);
  const repository = await Repository.start(t, FIXTURES, { models: 'a=tensors.mjs' });
  const call = infer(repository.server, '/v2/models/a/infer', { inputs: [way('waits')] });
  await cues.untilNoted('it runs');
  let isUnloaded = false;
  const unloaded = repository.change('a/unload').finally(() => (isUnloaded = true));
  await eventually(
    async () => (await repository.says('a')) === 'The model a is being unregistered.',
    60_000,
    () => 'new calls are refused',
  );
  const ready = await ask(repository.server.url, '/v2/models/a/ready');
  assert.deepEqual([ready.status, ready.json['ready'], isUnloaded], [400, false, false]);
  cues.give('it may end');
  assert.deepEqual((await call).outputs['y']?.data, [1]);
  assert.deepEqual(await unloaded, [200, { name: 'a', unload: true }]);
});

test('an unload that takes longer than --unregister-timeout: 408, and it goes on', LIMIT, async (t) => {
  const models = { models: 'a=ignores-sigterm.mjs', unregisterTimeout: '500ms' } as const;
  const repository = await Repository.start(t, FIXTURES, models);
  const [pid = 0] = await repository.server.pids('a');
  process.kill(pid, 'SIGSTOP'); // nothing but SIGKILL ends it now
  const unloaded = repository.change('a/unload');
  const isUnloading = async (): Promise<boolean> =>
    (await repository.server.describe('a')).status === 'UNLOADING';
  await eventually(isUnloading, 60_000, () => 'it is not unloaded');
  const [status, error] = await unloaded;
  assert.equal(status, 408);
  assert.match(String(error), /^failed to unload 'a' in time/);
  await eventually(
    async () => (await repository.says('a')) === "Request for unknown model: 'a' is not found",
    60_000,
    () => 'it does not go on',
  );
});

test('the repository is where the management API is, and needs its key', LIMIT, async (t) => {
  const port = await holdPort();
  const keys = { apiKey: 'to-call', managementKey: 'to-manage' };
  const repository = await Repository.start(t, makeStore(t, { 'a.mjs': saying('one') }), {
    port,
    managementPort: port,
    ...keys,
  });
  const statusOf = async (path: string, key: string): Promise<number> =>
    (await repository.post(path, '', { Authorization: `Bearer ${key}` })).status;
  for (const [path, key, status] of [
    ['index', '', 401],
    ['index', 'to-call', 401],
    ['index', 'to-manage', 200],
    ['models/a/load', 'to-call', 401],
    ['models/a/load', 'to-manage', 200],
  ] as const)
    assert.equal(await statusOf(path, key), status, `${path} with ${key}`);
  const { url } = repository.server;
  const withKey = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });
  assert.deepEqual(
    [
      (await ask(url, '/v2/models/a', withKey('to-call'))).status,
      (await ask(url, '/v2/models/a/ready')).status,
    ],
    [200, 200],
  );
  const { json } = await ask(url, '/v2', withKey('to-call'));
  assert.ok((json['extensions'] as string[]).includes('model_repository'));
  const wrong = await ask(url, '/v2/repository/index', withKey('to-manage'));
  assert.deepEqual([wrong.status, wrong.headers.allow], [405, 'POST']);
});

test('without an app, what nothing claims below /v2 is in the shape of the protocol', LIMIT, async (t) => {
  const { server } = await Repository.start(t, makeStore(t, { 'a.mjs': saying('one') }));
  for (const url of [server.url, server.managementUrl]) {
    const below = await ask(url, '/v2/none', { method: 'POST' });
    assert.deepEqual([below.status, below.json], [404, { error: 'There is no POST /v2/none here.' }]);
    assert.equal((await ask(url, '/none', { method: 'POST' })).json['type'], 'ResourceNotFoundException');
  }
  assert.equal((await ask(server.url, '/v2/repository/index', { method: 'POST' })).status, 404);
});
