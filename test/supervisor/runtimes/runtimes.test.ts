import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveOptions } from '../../../supervisor/options/resolve.js';
import {
  EXTENSIONS,
  entryExtensionsFor,
  prepareProgram,
  runtimeNameOf,
} from '../../../supervisor/runtimes/index.js';
import type { AppSetting, Runtime } from '../../../supervisor/runtimes/runtime.js';

const SPEC = {
  name: 'm',
  version: '1',
  app: '/apps/app.ts',
  appPlace: '',
  service: null,
  workerCommand: null,
};

const SETTING: AppSetting = {
  resolved: resolveOptions([]),
  startFolder: '/apps',
  isUnpacked: false,
  env: {},
};

for (const extension of EXTENSIONS.entries.filter((one) => one !== '.py')) {
  test(`an app that ends in ${extension} runs in Node, and its folder is watched`, async () => {
    const app = `/apps/app${extension}`;
    const { command, label, watches } = await prepareProgram({ ...SPEC, app }, SETTING);
    assert.equal(command[0], process.execPath);
    assert.match(String(command[1]), /worker\/main\.js$/);
    assert.deepEqual([label, watches], ['node', [app]]);
  });
}

test("a user's own program is run unchanged for any app, and nothing is watched", async () => {
  for (const app of ['', 'model.bin', '/apps/app.ts']) {
    const { command, label, watches } = await prepareProgram(
      { ...SPEC, app, workerCommand: ['/usr/bin/python3', 'worker.py'] },
      SETTING,
    );
    assert.deepEqual([command, label, watches], [['/usr/bin/python3', 'worker.py'], 'python3', []]);
  }
});

test('a file that no runtime claims is refused with the known extensions', async () => {
  await assert.rejects(prepareProgram({ ...SPEC, app: '/apps/model.pkl' }, SETTING), {
    code: 'SERVE_CONFIG',
    message:
      '/apps/model.pkl: no runtime runs such a file; an app is one of .ts .mts .cts .js .mjs .cjs .py .onnx.',
  });
});

test('the first runtime of the list that claims an app prepares it, and its error is passed on', async () => {
  const program = {
    command: ['sh'],
    env: {},
    label: 'shell',
    watches: [],
    batchCure: '',
    warnings: [],
  };
  const shell: Runtime = {
    names: ['shell'],
    entries: ['.sh'],
    claims: ({ app }) => app.endsWith('.sh'),
    prepare: ({ app }) =>
      app === '/no.sh' ? Promise.reject(new Error('no shell')) : Promise.resolve(program),
  };
  const never: Runtime = { ...shell, prepare: () => assert.fail('not asked') };
  assert.equal(await prepareProgram({ ...SPEC, app: '/a.sh' }, SETTING, [shell, never]), program);
  await assert.rejects(prepareProgram({ ...SPEC, app: '/no.sh' }, SETTING, [shell, never]), /no shell/);
});

test('entryExtensionsFor lists the extensions of entries of the named runtime first', () => {
  assert.deepEqual(entryExtensionsFor('python3').slice(0, 2), ['.py', '.ts']);
  assert.deepEqual(entryExtensionsFor('node'), EXTENSIONS.entries);
  assert.deepEqual(
    [runtimeNameOf('.py'), runtimeNameOf('.mts'), runtimeNameOf('.pkl')],
    ['python', 'node', null],
  );
});
