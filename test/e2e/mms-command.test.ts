/** Start scripts of Multi Model Server with the name of the command changed, and the errors for mistakes in them. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { editedApp } from '../helpers/edited-app.js';
import { call, runCommand, startServer } from '../helpers/server.js';

const RUNS = { timeout: 240_000, concurrency: 2 };

const SERVICE = `export const handle = (data) => data && data.map(({ body }) => ({ says: body }));`;

const FILES = {
  'config.properties': 'inference_address=http://127.0.0.1:0\nmanagement_address=http://127.0.0.1:0\n',
  'log4j.properties': 'log4j.rootLogger = INFO, console\n',
  'models/cats.mjs': SERVICE,
  'models/dogs.mjs': SERVICE,
};

function folderOf(t: TestContext): string {
  return editedApp(t, FILES).folder;
}

const LEFT_ASIDE = [
  'WARN: --disable-token-auth is ignored: keys are given by --api-key and --management-key',
  'WARN: --enable-model-api is ignored: the address and the key of the management API decide who may register models',
  'WARN: --log-config log4j.properties is ignored: use --log-level, --log-format and --log-location',
  'WARN: --plugins-path is ignored: there are no plugins',
  'WARN: --workflow-store is ignored: there are no workflows',
];

describe('a start script of Multi Model Server', RUNS, () => {
  for (const [script, names] of [
    [
      '--start --foreground --mms-config config.properties --model-store models --models all',
      ['cats', 'dogs'],
    ],
    [
      '--start --ncs --no-config-snapshots --ts-config config.properties --log-config log4j.properties --disable-token-auth --enable-model-api --plugins-path p --workflow-store w --model-store ./models --models felix=cats.mjs dogs=dogs.mjs',
      ['dogs', 'felix'],
    ],
    ['--model-store models --models cats.mjs,rex=dogs.mjs --models tom=cats.mjs', ['cats', 'rex', 'tom']],
  ] as const)
    test(`${script}: the server stays in the foreground and serves ${names.join(' and ')}`, async (t) => {
      const args = script.split(' ');
      const server = await startServer(null, { t, cwd: folderOf(t), args, isAddressGiven: true });
      await server.untilPrinted('Model server started.');
      const { models } = await server.until(({ state }) => state === 'ready');
      assert.deepEqual(models.map(({ name }) => name).sort(), names);
      for (const name of names)
        assert.deepEqual((await call(`${server.url}/predictions/${name}`, '5')).json(), { says: 5 });
      const warnings = server.stderr().match(/WARN: .*/g) ?? [];
      assert.deepEqual(warnings.sort(), script.includes('--log-config') ? LEFT_ASIDE : []);
      await server.stop();
    });

  test('--models ALL without a store is a server without models', async (t) => {
    const args = ['--mms-config', 'config.properties', '--models', 'ALL'];
    const server = await startServer(null, { t, cwd: folderOf(t), args, isAddressGiven: true });
    await server.untilPrinted('Model server started.');
    assert.deepEqual((await server.status()).models, []);
    assert.deepEqual(await (await fetch(`${server.url}/ping`)).json(), { status: 'Healthy' });
    await server.stop();
  });
});

const MISTAKES: readonly (readonly [script: string, says: string])[] = [
  [
    '--stop',
    '--stop: no command stops a running server, because it runs in the foreground. Press Ctrl-C there, or send it SIGTERM: kill <pid>, systemctl stop, docker stop. It finishes its calls first.',
  ],
  ['--start --model-store modles', '--model-store modles: no such folder. Did you mean models?'],
  [
    '--start --mms-config conf.properties',
    '--mms-config conf.properties: no such file. Did you mean config.properties?',
  ],
  ['--start --log-config log4j.xml --model-store models', '--log-config log4j.xml: no such file.'],
  [
    '--start --models cats=cats.mjs',
    '--models names models of a store, but no store is given: give its folder as --model-store.',
  ],
  ['--start --model-stroe models', "unknown option '--model-stroe'\n(Did you mean --model-store?)"],
];

describe('a mistake in a start script ends it with exit code 2 and a sentence', RUNS, () => {
  for (const [script, says] of MISTAKES)
    test(script, async (t) => {
      const command = runCommand(script.split(' '), { t, cwd: folderOf(t) });
      assert.deepEqual(await command.ended, { code: 2, signal: null });
      assert.deepEqual([command.stdout(), command.stderr()], ['', `banana-serve: ${says}\n`]);
    });
});
