/** `models` of config.properties: settings of single models, and the errors of wrong ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readModelSettings } from '../../../../supervisor/options/mms/model-settings.js';
import { setBounds } from '../../../../supervisor/models/bounds.js';
import { resolveModelOptions, resolveOptions } from '../../../../supervisor/options/resolve.js';

const PLACE = 'config.properties line 3: models';
const REF = { name: 'noop', version: '1.0' };

function read(setting: unknown): ReturnType<typeof readModelSettings> {
  return readModelSettings(JSON.stringify({ noop: { '1.0': setting } }), PLACE);
}

test('the settings of a model come to its options and to the bounds of its workers', () => {
  const { settingOf, warnings } = read({
    defaultVersion: true,
    marName: 'noop.mar',
    minWorkers: 2,
    maxWorkers: 3,
    batchSize: 4,
    maxBatchDelay: 50,
    responseTimeout: 60,
    startupTimeout: 90,
  });
  const setting = settingOf(REF);
  assert.ok(setting !== null);
  const { options } = resolveModelOptions(resolveOptions([]), setting.source, 'noop');
  const { batchSize, maxBatchDelay, runTimeout, initTimeout } = options;
  assert.deepEqual([batchSize, maxBatchDelay, runTimeout, initTimeout], [4, 50, 60_000, 90_000]);
  assert.deepEqual(setBounds(setting, 1), { min: 2, max: 3 });
  assert.deepEqual(warnings, []);
  assert.equal(settingOf({ ...REF, version: '2.0' }), null);
  assert.equal(settingOf({ ...REF, name: 'other' }), null);
});

for (const [setting, count, bounds] of [
  [{}, 4, null],
  [{ minWorkers: 2 }, 1, { min: 2, max: 2 }],
  [{ maxWorkers: 2 }, 4, { min: 2, max: 2 }],
  [{ maxWorkers: 2 }, 0, { min: 0, max: 2 }],
  [{ minWorkers: '0', maxWorkers: '1' }, 4, { min: 0, max: 1 }],
] as const)
  test(`${JSON.stringify(setting)} of a model that would have ${count} workers: ${JSON.stringify(bounds)}`, () => {
    assert.deepEqual(setBounds(read(setting).settingOf(REF), count), bounds);
  });

test('settings without effect are named in one warning', () => {
  assert.deepEqual(read({ batchSize: 2, deviceIds: [0], parallelType: 'pp' }).warnings, [
    `${PLACE}: these settings have no effect here: deviceIds, parallelType`,
  ]);
});

for (const [text, message] of [
  [
    '{"noop": ',
    /^config\.properties line 3: models: "\{.*" is not allowed; give a JSON object, such as \{"noop"/,
  ],
  ['{"noop": 5}', `${PLACE}: noop: 5 is not allowed; give a JSON object, such as {"1.0": {"batchSize": 4}}.`],
  [
    '{"noop": {"1.0": []}}',
    `${PLACE}: noop 1.0: [] is not allowed; give a JSON object, such as {"batchSize": 4}.`,
  ],
  ['{"../x": {"1.0": {}}}', /"\.\.\/x" is not allowed; give up to 128 letters/],
  [
    '{"noop": {"1.0": {"batchSize": 0}}}',
    `${PLACE}: noop 1.0 batchSize: 0 is not allowed; give a whole number from 1 to 1024.`,
  ],
  [
    '{"noop": {"1.0": {"responseTimeout": 0}}}',
    `${PLACE}: noop 1.0 responseTimeout: 0 is not allowed; give a number of seconds above 0, such as 120, up to 2073600.`,
  ],
  [
    '{"noop": {"1.0": {"minWorkers": 3, "maxWorkers": 2}}}',
    `${PLACE}: noop 1.0 maxWorkers: 2 is not allowed; give at least 3, as minWorkers.`,
  ],
] as const)
  test(`refused: ${text}`, () => {
    assert.throws(() => readModelSettings(text, PLACE), { code: 'SERVE_CONFIG', message });
  });
