/** Loaders by extension; `test/processes/worker/load-app.test.ts` has real modules. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppLoadError } from '../../../worker/load/explain-load-error.js';
import { loadApp } from '../../../worker/load/load-app.js';
import type { Exports } from '../../../worker/adapters/loaded-app.js';
import type { AppFile, Loader } from '../../../worker/load/load-module.js';
import type { CallInfo } from '../../../worker/api/types.js';
import { appFolder } from '../app-folder.js';

const ON_GPU = { gpu: '1', threads: 3 };

/** A loader of files that are no modules. */
function weights(exports: Exports, onLoad: (file: AppFile) => void = () => {}): Loader {
  return {
    extensions: ['.weights'],
    load: (file) => {
      onLoad(file);
      const explainMissing = (): AppLoadError => new AppLoadError(`${file.app}: no graph`);
      return Promise.resolve({ candidates: [exports], explainMissing });
    },
  };
}

test('an app that is no module has a loader by its extension, which gets the device, its threads and the batch size', async (t) => {
  const app = join(appFolder(t, { 'm.weights': '' }), 'm.weights');
  const given: AppFile[] = [];
  const exports = {
    config: { batchSize: 8 },
    inference: (input: number) => input + 1,
    inferenceBatch: (inputs: number[]) => inputs.map((input) => input + 1),
  };
  const loaded = await loadApp({ app, device: ON_GPU, batchSize: 8 }, [
    weights(exports, (file) => given.push(file)),
  ]);
  assert.deepEqual(given, [{ app, device: ON_GPU, batchSize: 8 }]);
  assert.equal(loaded.handle('/', 1, {} as CallInfo), 2);
  assert.deepEqual(loaded.handleBatch?.('/', [1, 2], []), [2, 3]);
  assert.deepEqual(loaded.description.modelOptions, { batchSize: 8 });
});

test('such an app may be a model of a store, with a handler by rule', async (t) => {
  const modelDir = appFolder(t, { 'm.weights': '' });
  const file = {
    app: join(modelDir, 'm.weights'),
    device: ON_GPU,
    batchSize: 8,
    service: { handler: '', modelDir },
  };
  const loaded = await loadApp(file, [weights({ inference: () => 'ran' })]);
  assert.equal(loaded.handle('/', null, {} as CallInfo), 'ran');
});

test('a loader explains a file of which no adapter takes anything', async (t) => {
  const app = join(appFolder(t, { 'm.weights': '' }), 'm.weights');
  await assert.rejects(loadApp({ app, device: ON_GPU, batchSize: 8 }, [weights({})]), {
    message: `${app}: no graph`,
  });
});

test('a file whose extension no loader has is no app', async (t) => {
  const app = join(appFolder(t, { 'm.weights': '' }), 'm.weights');
  await assert.rejects(loadApp({ app, device: ON_GPU, batchSize: 8 }), {
    message: `${app}: this is not an app. Write it in TypeScript, JavaScript or Python.`,
  });
});
