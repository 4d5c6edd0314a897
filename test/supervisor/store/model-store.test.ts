/** Models that a store finds, the files that workers load, and links out of the store. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { NO_URLS } from '../../../supervisor/options/allowed-urls.js';
import { ModelStore } from '../../../supervisor/store/model-store.js';
import type { StoreQuery } from '../../../supervisor/store/stored-model.js';
import { storeAt } from './store-at.js';

/** Creates a folder with these empty files and returns its real path; it is removed when the test ends. */
function folderOf(t: TestContext, files: readonly string[]): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'banana-store-')));
  t.after(() => rmSync(path, { recursive: true }));
  for (const name of files) {
    mkdirSync(name.endsWith('/') ? join(path, name) : dirname(join(path, name)), { recursive: true });
    if (!name.endsWith('/')) writeFileSync(join(path, name), '');
  }
  return path;
}

/** Queries to a store with these files, with the resulting file and handler. */
type Found = readonly [query: StoreQuery, files: readonly string[], app: string, handler: string];

const FOUND: readonly Found[] = [
  [{ url: 'm' }, ['m/service.ts', 'm/app.ts', 'm/index.js', 'm/m.ts'], 'm/service.ts', ''],
  [{ url: 'm/' }, ['m/service.mjs', 'm/app.ts'], 'm/service.mjs', ''],
  [{ url: './m' }, ['m/app.cjs', 'm/index.js'], 'm/app.cjs', ''],
  [{ url: 'm' }, ['m/index.js', 'm/m.ts'], 'm/index.js', ''],
  [{ url: 'm' }, ['m/m.ts', 'm/other.ts'], 'm/m.ts', ''],
  [{ url: 'm' }, ['m/my-handler.ts', 'm/types.d.ts', 'm/labels.json'], 'm/my-handler.ts', ''],
  [{ url: 'a/b' }, ['a/b/service.ts'], 'a/b/service.ts', ''],
  [{ url: 'one.ts' }, ['one.ts'], 'one.ts', ''],
  [{ url: 'one.ts', handler: 'one:Predictor' }, ['one.ts'], 'one.ts', 'Predictor'],
  [{ url: 'm', handler: 'my' }, ['m/my.ts', 'm/service.ts'], 'm/my.ts', ''],
  [{ url: 'm', handler: 'my:run' }, ['m/my.mjs'], 'm/my.mjs', 'run'],
  [{ url: 'm', handler: 'my.ts:run' }, ['m/my.ts', 'm/my.js'], 'm/my.ts', 'run'],
  [{ url: 'm', handler: 'my.js:run' }, ['m/my.ts', 'm/my.js'], 'm/my.js', 'run'],
  [{ url: 'm', handler: 'my.py:run' }, ['m/my.ts'], 'm/my.ts', 'run'],
  [{ url: 'm', handler: 'src/my.py:run' }, ['m/src/my.ts', 'm/my.ts'], 'm/src/my.ts', 'run'],
  [{ url: 'm', handler: '/home/model/my.py:run' }, ['m/my.ts'], 'm/my.ts', 'run'],
  [{ url: 'm', handler: 'my', runtime: 'python' }, ['m/my.ts'], 'm/my.ts', ''],
  [{ url: 'm', handler: 'my', runtime: 'node' }, ['m/my.py', 'm/my.js'], 'm/my.js', ''],
  [{ url: 'm', handler: 'my' }, ['m/my.py', 'm/my.js'], 'm/my.js', ''],
  [{ url: 'm', handler: 'my.py' }, ['m/my.py', 'm/my.js'], 'm/my.py', ''],
  [{ url: 'm' }, ['m/service.py'], 'm/service.py', ''],
  [{ url: 'm' }, ['m/only.py'], 'm/only.py', ''],
  [{ url: 'm' }, ['m/only.mjs', 'm/convert.py', 'm/train.py'], 'm/only.mjs', ''],
  [{ url: 'm', runtime: 'python3' }, ['m/only.py', 'm/page.js'], 'm/only.py', ''],
  [{ url: 'm', runtime: 'python3' }, ['m/service.py', 'm/service.ts'], 'm/service.py', ''],
  [{ url: 'one.py' }, ['one.py'], 'one.py', ''],
  // Weights beside a handler are data, whatever their name.
  [{ url: 'mnist' }, ['mnist/mnist.onnx', 'mnist/mnist_handler.py'], 'mnist/mnist_handler.py', ''],
  [{ url: 'mnist' }, ['mnist/service.onnx', 'mnist/mnist_handler.mjs'], 'mnist/mnist_handler.mjs', ''],
  [{ url: 'm', handler: 'my:run' }, ['m/my.onnx', 'm/my.py'], 'm/my.py', 'run'],
];

for (const [query, files, app, handler] of FOUND) {
  test(`${JSON.stringify(query)} beside ${files.join(', ')} is ${app}`, async (t) => {
    const folder = folderOf(t, files);
    const found = await storeAt(t, folder).find(query);
    assert.equal(found.app, join(folder, app));
    const modelDir = /\.(?:ts|py)$/.test(query.url) ? folder : join(folder, query.url);
    assert.deepEqual(found.service, { handler, modelDir: modelDir.replace(/\/$/, '') });
    assert.deepEqual([found.url, found.version], [query.url, '1']);
  });
}

/** Queries for models that no code serves, with their versions, the newest first. */
const WITHOUT_CODE: readonly (readonly [
  url: string,
  files: readonly string[],
  versions: readonly string[],
])[] = [
  ['m.onnx', ['m.onnx', 'other.ts'], ['1 m.onnx']],
  ['m', ['m/net.onnx', 'm/net.onnx.data', 'm/labels.json'], ['1 m/net.onnx']],
  // As in Triton's repositories.
  [
    'm',
    ['m/config.pbtxt', 'm/9/model.onnx', 'm/10/model.onnx', 'm/1/model.onnx', 'm/1/labels.txt'],
    ['10 m/10/model.onnx', '9 m/9/model.onnx', '1 m/1/model.onnx'],
  ],
  [
    'm',
    ['m/2/model.onnx', 'm/0/model.onnx', 'm/3/model.plan', 'm/new/model.onnx', 'm/4/net.onnx'],
    ['2 m/2/model.onnx'],
  ],
];

for (const [url, files, versions] of WITHOUT_CODE)
  test(`${url} beside ${files.join(', ')} is ${versions.join(', ')}`, async (t) => {
    const folder = folderOf(t, files);
    const { others, ...newest } = await storeAt(t, folder).find({ url });
    const all = [newest, ...others];
    assert.deepEqual(
      all.map(({ version, app }) => `${version} ${app.slice(folder.length + 1)}`),
      versions,
    );
    for (const { name, service, place, app } of all)
      assert.deepEqual([name, service, place], ['m', null, app]);
  });

test('a version folder that is a link out of the store is refused', async (t) => {
  const folder = folderOf(t, ['store/m/', 'elsewhere/model.onnx']);
  symlinkSync('../../elsewhere', join(folder, 'store/m/1'));
  await assert.rejects(storeAt(t, join(folder, 'store')).find({ url: 'm' }), {
    code: 'SERVE_ARCHIVE_INVALID',
    message: /1\/model\.onnx is a link that points outside the model store\./,
  });
});

test('a model may be a link to a file without extension, as in a cache', async (t) => {
  const folder = folderOf(t, ['m/', 'blobs/c0ffee']);
  symlinkSync('../blobs/c0ffee', join(folder, 'm/net.onnx'));
  assert.equal((await storeAt(t, folder).find({ url: 'm' })).app, join(folder, 'm/net.onnx'));
});

test('of all models of a store, one with the name of a handler beside it is left to the handler', async (t) => {
  const store = storeAt(t, folderOf(t, ['a.onnx', 'a.py', 'b.onnx', 'c_handler.py']));
  assert.deepEqual(await store.urls(), ['a.py', 'b.onnx', 'c_handler.py']);
});

/** Queries to a store with these files, with the missing file that the first worker is to load. */
const UNSERVABLE: readonly (readonly [query: StoreQuery, files: readonly string[], app: string])[] = [
  [{ url: 'm', handler: 'gone.py:handle' }, ['m/service.ts'], 'm/gone.py'],
  [{ url: 'one.ts', handler: 'two:handle' }, ['one.ts', 'two.ts'], 'one.ts/two.ts'],
  [{ url: 'one.ts', handler: 'src/two.js:handle' }, ['one.ts'], 'one.ts/two.js'],
  [{ url: 'm' }, ['m/a.ts', 'm/b.ts'], 'm'],
  [{ url: 'm' }, ['m/labels.json'], 'm'],
  [{ url: 'm', handler: 'my' }, ['m/my.onnx', 'm/other.py'], 'm/my.py'],
];

for (const [query, files, app] of UNSERVABLE) {
  test(`${JSON.stringify(query)} beside ${files.join(', ')} is found: a worker is to load ${app}`, async (t) => {
    const folder = folderOf(t, files);
    assert.equal((await storeAt(t, folder).find(query)).app, join(folder, app));
  });
}

const NAMES: readonly (readonly [url: string, files: readonly string[], name: string])[] = [
  ['digits', ['digits/app.ts'], 'digits'],
  ['digits.ts', ['digits.ts'], 'digits'],
  ['res-net.v2', ['res-net.v2/app.ts'], 'res_net_v2'],
  ['my model.v2.mjs', ['my model.v2.mjs'], 'my_model_v2'],
  ['zoo/cats/', ['zoo/cats/app.ts'], 'cats'],
  ['//zoo/cats', ['zoo/cats/app.ts'], 'cats'],
];

for (const [url, files, name] of NAMES) {
  test(`the default name of a model at ${url} is ${name}`, async (t) => {
    const store = storeAt(t, folderOf(t, files));
    assert.equal((await store.find({ url })).name, name);
  });
}

/** Refused queries to a store with `m/service.ts`, `labels.json` and `one.ts`. */
const REFUSED: readonly (readonly [query: StoreQuery, code: string, message: string | RegExp])[] = [
  [{ url: '../../x' }, 'SERVE_MODEL_NOT_FOUND', 'Relative path is not allowed in url: ../../x'],
  [{ url: 'm/..' }, 'SERVE_MODEL_NOT_FOUND', 'Relative path is not allowed in url: m/..'],
  [{ url: '/etc' }, 'SERVE_MODEL_NOT_FOUND', 'Model not found in model store: /etc'],
  [{ url: 'gone' }, 'SERVE_MODEL_NOT_FOUND', 'Model not found in model store: gone'],
  [{ url: 'm\0' }, 'SERVE_MODEL_NOT_FOUND', 'Model not found in model store: m\0'],
  [{ url: '.' }, 'SERVE_MODEL_NOT_FOUND', 'Model not found in model store: .'],
  [
    { url: 'file:///etc/passwd' },
    'SERVE_MODEL_NOT_FOUND',
    'Model not found in model store: file:///etc/passwd',
  ],
  [{ url: 'http://' }, 'SERVE_MODEL_NOT_FOUND', 'Invalid model url: http://'],
  [
    { url: 'HTTPS://models.example.com/m.mar' },
    'SERVE_DOWNLOAD_FAILED',
    'Failed to download model from: HTTPS://models.example.com/m.mar: not allowed (allowed_urls)',
  ],
  [{ url: 'm', runtime: 'java' }, 'SERVE_BAD_REQUEST', 'Invalid RuntimeType value: java'],
  [
    { url: 'labels.json' },
    'SERVE_ARCHIVE_INVALID',
    'labels.json: it is neither a zip archive nor a gzip-compressed tar archive.',
  ],
  [
    { url: 'm', handler: '../one:handle' },
    'SERVE_ARCHIVE_INVALID',
    'm: the handler ../one is outside the model.',
  ],
];

for (const [query, code, message] of REFUSED) {
  test(`${JSON.stringify(query)} is refused with ${code}: ${String(message)}`, async (t) => {
    const store = storeAt(t, folderOf(t, ['m/service.ts', 'labels.json', 'one.ts']));
    await assert.rejects(store.find(query), { code, message });
  });
}

describe('links', () => {
  test('within the store are followed', async (t) => {
    const folder = folderOf(t, ['m/service.ts']);
    symlinkSync('m', join(folder, 'other'));
    const { app, name } = await storeAt(t, folder).find({ url: 'other' });
    assert.deepEqual([app, name], [join(folder, 'm/service.ts'), 'other']);
  });

  test('that point outside it are refused: a folder, a file, and the file of a folder', async (t) => {
    const outside = folderOf(t, ['secret/service.ts']);
    const folder = folderOf(t, ['m/']);
    symlinkSync(join(outside, 'secret'), join(folder, 'away'));
    symlinkSync(join(outside, 'secret/service.ts'), join(folder, 'away.ts'));
    symlinkSync(join(outside, 'secret/service.ts'), join(folder, 'm/service.ts'));
    const store = storeAt(t, folder);
    for (const url of ['away', 'away.ts', 'away/service.ts'])
      await assert.rejects(store.find({ url }), {
        code: 'SERVE_MODEL_NOT_FOUND',
        message: `Model not found in model store: ${url}: a link points outside the store.`,
      });
    for (const handler of ['', 'service:handle'])
      await assert.rejects(store.find({ url: 'm', handler }), { code: 'SERVE_ARCHIVE_INVALID' });
  });

  test('to a folder whose name only begins like the store are refused', async (t) => {
    const folder = folderOf(t, ['store/', 'store-secret/service.ts']);
    symlinkSync('../store-secret', join(folder, 'store/away'));
    await assert.rejects(storeAt(t, join(folder, 'store')).find({ url: 'away' }), {
      code: 'SERVE_MODEL_NOT_FOUND',
    });
  });

  test('may point to the store itself', async (t) => {
    const folder = folderOf(t, ['real/m/service.ts']);
    symlinkSync('real', join(folder, 'store'));
    const { app } = await storeAt(t, join(folder, 'store')).find({ url: 'm' });
    assert.equal(app, join(folder, 'real/m/service.ts'));
  });
});

test('without a store every query is refused with the reason', async (t) => {
  const store = storeAt(t, null);
  const message = 'Model store has not been configured.';
  await assert.rejects(store.find({ url: 'm' }), { code: 'SERVE_MODEL_NOT_FOUND', message });
  assert.deepEqual(await store.urls(), []);
});

for (const [defaultHandler, handler] of [
  ['one:Cats', 'Cats'],
  ['one.mjs:Cats', 'Cats'],
  ['service:Cats', ''],
] as const)
  test(`the default handler ${defaultHandler} gives the file one.ts the handler "${handler}"`, async (t) => {
    const folder = folderOf(t, ['one.ts']);
    const store = new ModelStore(folder, { allowedUrls: NO_URLS, defaultHandler });
    t.after(() => store.close());
    const { app, service } = await store.find({ url: 'one.ts' });
    assert.deepEqual([app, service?.handler], [join(folder, 'one.ts'), handler]);
  });

test('urls lists everything visible that may be a model, sorted, even if it cannot be served', async (t) => {
  const files = [
    'b/service.ts',
    'a.ts',
    'c.mjs',
    '.git/app.ts',
    '.hidden.ts',
    'node_modules/x/index.js',
    'd.json',
    'e.d.ts',
    'f.mar',
    'g.py',
  ];
  assert.deepEqual(await storeAt(t, folderOf(t, files)).urls(), ['a.ts', 'b', 'c.mjs', 'f.mar', 'g.py']);
});

const WHOLE: readonly (readonly [url: (store: string) => string, found: string | RegExp])[] = [
  [(store) => `${store}/hash/model`, 'hash/model/app.mjs'],
  [(store) => `${store}//hash/./model/`, 'hash/model/app.mjs'],
  [() => 'hash/model', /^Invalid model url: hash\/model\. It must be the path of a folder below \//],
  [() => '/hash/model', /^Invalid model url/],
  [(store) => `${store}-beside/hash`, /^Invalid model url/],
  [(store) => `${store}/hash/model/app.mjs`, /^Invalid model url/],
  [(store) => `${store}/`, /^Model not found in model store/],
  [(store) => `${store}/none`, /^Model not found in model store/],
  [(store) => `${store}/hash/../../etc`, /^Relative path is not allowed/],
  [(store) => `${store}/out`, /a link points outside the store/],
  [() => 'https://models.example.com/a.tar.gz', /not allowed \(allowed_urls\)/],
];

for (const [url, expected] of WHOLE)
  test(`a store of whole paths, asked for ${url('<store>')}: ${String(expected)}`, async (t) => {
    const folder = folderOf(t, ['hash/model/app.mjs']);
    symlinkSync(tmpdir(), join(folder, 'out'));
    const store = new ModelStore(folder, { allowedUrls: NO_URLS, defaultHandler: null }, true);
    t.after(() => store.close());
    const found = store.find({ url: url(folder), name: 'm' });
    if (typeof expected === 'string') assert.equal((await found).app, join(folder, expected));
    else await assert.rejects(found, ({ message }: Error) => expected.test(message));
  });

test('a store of whole paths has one version of each model, the highest', async (t) => {
  const folder = folderOf(t, ['m/1/model.onnx', 'm/2/model.onnx']);
  const store = new ModelStore(folder, { allowedUrls: NO_URLS, defaultHandler: null }, true);
  t.after(() => store.close());
  const { app, version, others } = await store.find({ url: `${folder}/m`, name: 'm' });
  assert.deepEqual([app, version, others], [join(folder, 'm/2/model.onnx'), '1', []]);
});
