/** SageMaker's argument and its environment, as options of a server. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Devices, type Machine } from '../../../supervisor/machine/placement.js';
import { readEnvironment } from '../../../supervisor/options/environment.js';
import { resolveOptions, type Options, type OptionSource } from '../../../supervisor/options/resolve.js';
import { gatherOptions } from '../../../supervisor/plan/gather-options.js';
import { placeModels } from '../../../supervisor/plan/plan-devices.js';
import { planModels } from '../../../supervisor/plan/plan-models.js';
import { planSageMaker, strayPorts } from '../../../supervisor/plan/sagemaker.js';
import { appFolder } from '../../worker/app-folder.js';

const MULTI_MODEL = { SAGEMAKER_MULTI_MODEL: 'true' };
const flags = (values: OptionSource['values']): OptionSource => ({ values, where: (name) => `--${name}` });

test('the model is that of the folder, unless the command or a file names an app', (t) => {
  const base = appFolder(t, { 'model/app.mjs': '' });
  const env = { SAGEMAKER_BASE_DIR: base };
  const { app, hasWholeUrls, source } = planSageMaker(null, resolveOptions([]), env);
  assert.deepEqual([app, hasWholeUrls], [join(base, 'model'), false]);
  assert.deepEqual([...resolveOptions([source]).explicit.keys()], ['port']);
  assert.equal(planSageMaker('./app.ts', resolveOptions([]), env).app, './app.ts');
});

test('without that folder, and with an app beside many models, nothing starts', () => {
  assert.throws(
    () => planSageMaker(null, resolveOptions([]), {}),
    /serve is SageMaker's argument, and there is no folder \/opt\/ml\/model\. To serve an app, name it/,
  );
  assert.throws(
    () => planSageMaker('./app.ts', resolveOptions([]), MULTI_MODEL),
    /^ServeError: SAGEMAKER_MULTI_MODEL=true: .*leave out the app \.\/app\.ts\.$/,
  );
});

const PORTS: readonly (readonly [
  what: string,
  flag: number | undefined,
  env: NodeJS.ProcessEnv,
  port: number,
])[] = [
  ['8080 by default', undefined, {}, 8080],
  ["the image's own is used where SageMaker names none", undefined, { BANANA_PORT: '9' }, 9],
  ["SageMaker's", undefined, { SAGEMAKER_BIND_TO_PORT: '8099', BANANA_PORT: '9', PORT: '10' }, 8099],
  ['a flag wins', 7, { SAGEMAKER_BIND_TO_PORT: '8099' }, 7],
];
for (const [what, port, env, expected] of PORTS)
  test(`the port of calls, which is that of management for many models: ${what}`, (t) => {
    const above = [flags({ port }), readEnvironment(env).source];
    const multi = { ...MULTI_MODEL, SAGEMAKER_BASE_DIR: appFolder(t, {}) };
    const { source, hasWholeUrls } = planSageMaker(null, resolveOptions(above), multi);
    const { options } = resolveOptions([...above, source]);
    assert.deepEqual([options.port, options.managementPort, hasWholeUrls], [expected, expected, true]);
    assert.deepEqual([options.host, options.defaultWorkers, options.ping], ['0.0.0.0', 1, 'always-200']);
  });

for (const multi of [false, true])
  test(`workers and the limit of a call are those of SageMaker's variables, many models: ${multi}`, (t) => {
    const OF_SERVER = { SAGEMAKER_MODEL_SERVER_WORKERS: '3', SAGEMAKER_MODEL_SERVER_TIMEOUT: '90' };
    const base = { SAGEMAKER_BASE_DIR: appFolder(t, { 'model/app.mjs': '' }) };
    const plan = (env: object, above: OptionSource[] = []): Options => {
      const all = { ...base, ...(multi ? MULTI_MODEL : {}), ...env };
      return resolveOptions([...above, planSageMaker(null, resolveOptions(above), all).source]).options;
    };
    const planned = plan(OF_SERVER);
    assert.deepEqual([planned.defaultWorkers, planned.workers, planned.runTimeout], [3, null, 90_000]);
    assert.equal(plan({}).runTimeout, 300_000);
    assert.equal(plan(OF_SERVER, [flags({ runTimeout: '1s' })]).runTimeout, 1000);
    assert.throws(
      () => plan({ ...OF_SERVER, SAGEMAKER_MODEL_SERVER_WORKERS: 'x' }),
      /SAGEMAKER_MODEL_SERVER_WORKERS: "x" is not allowed/,
    );
  });

const MACHINE: Machine = { found: [], result: 'none', inheritedMask: undefined, cores: 2 };
const GPU: Machine = { ...MACHINE, found: [{ index: 0, uuid: 'GPU-1', name: 'T4', card: 'GPU-1' }] };
const WORKERS: readonly (readonly [string, OptionSource['values'], Machine, devices: string[]])[] = [
  ['without a GPU', {}, MACHINE, ['cpu', 'cpu', 'cpu']],
  ['with a GPU, which they share', {}, GPU, ['gpu 0', 'gpu 0', 'gpu 0']],
  ['not those of an operator', { workers: 1 }, MACHINE, ['cpu']],
  ['not those of an operator for each GPU', { workersPerGpu: 2 }, GPU, ['gpu 0', 'gpu 0']],
  ['not those of a model that scales itself', { maxWorkers: 2 }, GPU, ['gpu 0']],
];
for (const [what, given, machine, devices] of WORKERS)
  test(`SageMaker's number of workers is that of the app, ${what}`, async (t) => {
    const cwd = appFolder(t, { 'model/app.mjs': '' });
    const variables = { SAGEMAKER_BASE_DIR: cwd, SAGEMAKER_MODEL_SERVER_WORKERS: '3' };
    Object.assign(process.env, variables);
    t.after(() => Object.keys(variables).forEach((name) => delete process.env[name]));
    const gathered = await gatherOptions({ cwd }, { flags: flags(given), isSageMaker: true });
    const placed = placeModels(await planModels(gathered), new Devices(machine));
    assert.deepEqual(
      placed.flatMap(({ placements }) => placements.map(({ device }) => device)),
      devices,
    );
  });

test('what the operator has set for many models wins, and the folder is made', (t) => {
  const base = appFolder(t, {});
  const above = [flags({ defaultWorkers: 2, ping: 'health' })];
  const { source } = planSageMaker(null, resolveOptions(above), { ...MULTI_MODEL, SAGEMAKER_BASE_DIR: base });
  const { options } = resolveOptions([...above, source]);
  const { modelStore, defaultWorkers, ping } = options;
  assert.deepEqual([modelStore, defaultWorkers, ping], [join(base, 'models'), 2, 'health']);
});

test('a second port outside the range that SageMaker leaves is warned of', () => {
  const RANGE = { SAGEMAKER_SAFE_PORT_RANGE: '20000-20009' };
  const strays = (values: object, env: NodeJS.ProcessEnv = RANGE): string[] =>
    strayPorts(resolveOptions([flags({ ...values })]).options, env);
  assert.deepEqual(strays({ metricsPort: 9404, managementPort: 20_010 }), [
    '--management-port 20010 is not in SAGEMAKER_SAFE_PORT_RANGE 20000-20009',
    '--metrics-port 9404 is not in SAGEMAKER_SAFE_PORT_RANGE 20000-20009',
  ]);
  assert.deepEqual(strays({ port: 8080, managementPort: 8080, metricsPort: 20_009 }), []);
  assert.deepEqual(strays({ managementPort: '/m.sock', metricsPort: 20_000 }), []);
  assert.deepEqual(strays({ metricsPort: 9404 }, {}), []);
});
