/** Manifests: their values, values that take precedence, and refused manifests. */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { StoreQuery, StoredModel } from '../../../supervisor/store/stored-model.js';
import { appFolder } from '../../worker/app-folder.js';
import { storeAt } from './store-at.js';

const NEW = 'MAR-INF/MANIFEST.json';
const OLD = 'MANIFEST.json';
const FILES = ['service.mjs', 'other.mjs', 'both.py', 'both.mjs'];

/** Finds the model in the folder `cats` with these manifests. */
function find(
  t: TestContext,
  manifests: Readonly<Record<string, unknown>>,
  query: Omit<StoreQuery, 'url'> = {},
): Promise<StoredModel> {
  const texts = Object.entries(manifests).map(([file, manifest]) => [
    `cats/${file}`,
    typeof manifest === 'string' ? manifest : JSON.stringify(manifest),
  ]);
  const empty = FILES.map((file) => [`cats/${file}`, '']);
  const folder = appFolder(t, Object.fromEntries([...empty, ...texts]) as Record<string, string>);
  return storeAt(t, folder).find({ url: 'cats', ...query });
}

function model(fields: object, others: object = {}): Record<string, unknown> {
  return {
    [NEW]: { runtime: 'python', model: { modelName: 'felis', handler: 'service', ...fields }, ...others },
  };
}

/** Name, version, file and handler from a manifest and a query. */
type Row = readonly [
  what: string,
  manifests: Readonly<Record<string, unknown>>,
  query: Omit<StoreQuery, 'url'>,
  found: readonly [name: string, version: string, file: string, handler: string],
];

const OLD_MODEL = { Model: { 'Model-Name': 'old', Service: 'other.py:run' }, Engine: { MXNet: 1.1 } };

const ROWS: readonly Row[] = [
  [
    'names the model and its handler',
    model({ handler: 'other.py:run' }),
    {},
    ['felis', '1.0', 'other.mjs', 'run'],
  ],
  ['names a version', model({ modelVersion: '2.1' }), {}, ['felis', '2.1', 'service.mjs', '']],
  [
    'may have null for a version, or a number',
    model({ modelVersion: null }),
    {},
    ['felis', '1.0', 'service.mjs', ''],
  ],
  ['with a number as its version', model({ modelVersion: 3 }), {}, ['felis', '3', 'service.mjs', '']],
  [
    'yields to the query',
    model({ modelVersion: '2' }),
    { name: 'lynx', handler: 'other:go', runtime: 'node' },
    ['lynx', '2', 'other.mjs', 'go'],
  ],
  [
    'may lack values that the query has',
    model({ modelName: null, handler: undefined }),
    { name: 'lynx', handler: 'other' },
    ['lynx', '1.0', 'other.mjs', ''],
  ],
  [
    'may lack a name at the start of a server',
    model({ modelName: undefined }),
    { mayGoUnnamed: true },
    ['cats', '1.0', 'service.mjs', ''],
  ],
  [
    'chooses by its runtime between files of several runtimes',
    model({ handler: 'both:run' }),
    {},
    ['felis', '1.0', 'both.py', 'run'],
  ],
  [
    'whose runtime the query overrides',
    model({ handler: 'both:run' }),
    { runtime: 'node' },
    ['felis', '1.0', 'both.mjs', 'run'],
  ],
  [
    'without a runtime',
    { [NEW]: { model: { modelName: 'a', handler: 'both:run' } } },
    {},
    ['a', '1.0', 'both.mjs', 'run'],
  ],
  ['with an engine', model({}, { engine: { engineName: 'MXNet' } }), {}, ['felis', '1.0', 'service.mjs', '']],
  ['of the first format', { [OLD]: OLD_MODEL }, {}, ['old', 'snapshot', 'other.mjs', 'run']],
  [
    'of the newer format takes precedence',
    { [OLD]: OLD_MODEL, ...model({}) },
    {},
    ['felis', '1.0', 'service.mjs', ''],
  ],
];

for (const [what, manifests, query, [name, version, file, handler]] of ROWS) {
  test(`a manifest ${what}`, async (t) => {
    const found = await find(t, manifests, query);
    assert.deepEqual([found.name, found.version, found.service?.handler], [name, version, handler]);
    assert.equal(found.app, join(found.place ?? '', file));
  });
}

const REFUSED: readonly (readonly [
  manifests: Readonly<Record<string, unknown>>,
  message: string | RegExp,
])[] = [
  [model({ modelName: '' }), 'Model name is not defined.'],
  [model({ modelName: ['a'] }), 'Model name is not defined.'],
  [model({ handler: ' ' }), 'Model handler is not defined.'],
  [{ [OLD]: { Model: { 'Model-Name': 'a' } } }, 'Model handler is not defined.'],
  [{ [OLD]: { Model: { Service: 'a' } } }, 'Model name is not defined.'],
  [{ [NEW]: {} }, 'cats: MAR-INF/MANIFEST.json has no object "model".'],
  [{ [OLD]: { Model: 'cats' } }, 'cats: MANIFEST.json has no object "Model".'],
  [model({}, { engine: {} }), 'cats: MAR-INF/MANIFEST.json has an "engine" without "engineName".'],
  [model({}, { engine: 'MXNet' }), /has an "engine" without "engineName"\.$/],
  [{ [NEW]: '{' }, /^cats: MAR-INF\/MANIFEST\.json is not JSON: /],
  [{ [NEW]: '[]' }, 'cats: MAR-INF/MANIFEST.json is not a JSON object.'],
  [{ [NEW]: `"${'x'.repeat(256 * 1024)}"` }, 'cats: MAR-INF/MANIFEST.json has more than 262144 bytes.'],
  [
    model({}, { runtime: 'java' }),
    /^cats: its manifest has the runtime "java"; a runtime is one of node, python,/,
  ],
  [model({ modelName: '../x' }), /^cats: its manifest has the name "\.\.\/x"; a name must consist of /],
  [model({ modelVersion: '1/2' }), /^cats: its manifest has the version "1\/2"; a version must consist of /],
];

for (const [manifests, message] of REFUSED) {
  test(`a manifest is refused: ${String(message)}`, async (t) => {
    await assert.rejects(find(t, manifests), { code: 'SERVE_ARCHIVE_INVALID', message });
  });
}

test('a manifest that is a link to outside the store is not read', async (t) => {
  const outside = appFolder(t, { 'secret.json': '{"model":{"modelName":"secret","handler":"service"}}' });
  const store = appFolder(t, { 'cats/service.mjs': '' });
  mkdirSync(join(store, 'cats/MAR-INF'));
  symlinkSync(join(outside, 'secret.json'), join(store, 'cats', NEW));
  await assert.rejects(storeAt(t, store).find({ url: 'cats' }), {
    message: `cats: ${NEW} is a link that points outside the model store.`,
  });
});

test('a folder with the name of a manifest is ignored', async (t) => {
  const store = appFolder(t, { 'cats/service.mjs': '', [`cats/${NEW}/x`]: '' });
  assert.equal((await storeAt(t, store).find({ url: 'cats' })).version, '1');
});
