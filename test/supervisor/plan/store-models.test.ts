/** Models of a store that a server starts with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveOptions } from '../../../supervisor/options/resolve.js';
import { openStore, planStoreModels } from '../../../supervisor/plan/first-models.js';
import { refusalOf } from '../../helpers/refusals.js';
import { appFolder } from '../../worker/app-folder.js';

/** Names of the planned models, and the warnings. */
async function planned(
  cwd: string,
  values: Readonly<Record<string, unknown>>,
): Promise<readonly [models: readonly string[], warnings: readonly string[]]> {
  const resolved = resolveOptions([{ values, where: (name) => `--${name}` }]);
  const store = openStore(resolved, cwd);
  const server = { resolved, cwd, isMmsMode: true, stop: undefined };
  const { plans, warnings } = await planStoreModels(store, server, []);
  store.close();
  return [plans.map(({ spec }) => spec.name), warnings];
}

test('an empty or missing store has no models to start, which is a warning', async (t) => {
  const cwd = appFolder(t, { 'store/.hidden': '' });
  assert.deepEqual(await planned(cwd, { models: 'all' }), [
    [],
    ['--models all: there is no model store; give its folder as --model-store'],
  ]);
  assert.deepEqual(await planned(cwd, { models: 'all', modelStore: 'store' }), [
    [],
    ['--models all: the model store store has no models; each is a folder, an archive or an app file'],
  ]);
});

test('none starts without models, with a store or without', async (t) => {
  const cwd = appFolder(t, { 'store/m.mjs': 'export const inference = () => 1;' });
  assert.deepEqual(await planned(cwd, { models: 'none' }), [[], []]);
  assert.deepEqual(await planned(cwd, { models: 'none', modelStore: 'store' }), [[], []]);
  assert.deepEqual(await planned(cwd, { models: 'all', modelStore: 'store' }), [['m'], []]);
});

test('all versions of a model as Triton has it are planned, the highest first, and its configuration is not read', async (t) => {
  const cwd = appFolder(t, {
    'store/m/config.pbtxt': '',
    ...Object.fromEntries(['1', '2', '10'].map((version) => [`store/m/${version}/model.onnx`, ''])),
  });
  const resolved = resolveOptions([{ values: { models: 'm', modelStore: 'store' }, where: (name) => name }]);
  const store = openStore(resolved, cwd);
  const server = { resolved, cwd, isMmsMode: false, stop: undefined };
  const { plans } = await planStoreModels(store, server, []);
  store.close();
  assert.deepEqual(
    plans.map(({ spec: { name, version, program } }) => [name, version, program.watches.length]),
    ['10', '2', '1'].map((version) => ['m', version, 1]),
  );
  assert.deepEqual(
    plans.flatMap(({ spec: { program } }) => program.warnings),
    [
      `${cwd}/store/m/config.pbtxt is not read: the model describes its inputs and outputs itself, and options set the rest`,
    ],
  );
});

for (const [flags, said] of [
  [{ modelStore: 'none' }, '--model-store none: no such folder.'],
  [{ modelStore: 'app.ts' }, '--model-store app.ts: this is a file; give a folder of models.'],
  [
    { models: 'a.mjs' },
    '--models names models of a store, but no store is given: give its folder as --model-store.',
  ],
] as const)
  test(`${JSON.stringify(flags)} is refused`, async (t) => {
    const cwd = appFolder(t, { 'app.ts': '', 'store/a.mjs': '' });
    assert.equal(await refusalOf({ cwd, flags }), said);
  });
