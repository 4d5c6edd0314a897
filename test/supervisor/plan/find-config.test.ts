/** The choice of the `config.properties` that is read. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { findConfig } from '../../../supervisor/plan/gather-options.js';
import { appFolder } from '../../worker/app-folder.js';

const GIVEN = { path: 'given.properties', place: '--mms-config' };
const VARIABLE = { MMS_CONFIG_FILE: 'variable.properties' };
const ASIDE =
  'config.properties is not read, because the folder has an app to serve; give --mms-config config.properties to read it';

const ROWS: readonly (readonly [
  what: string,
  query: Partial<Parameters<typeof findConfig>[0]>,
  name: string | null,
  warnings: readonly string[],
])[] = [
  ['none is named and no app is served: the file of the folder', {}, 'config.properties', []],
  ['an app is named', { isAppNamed: true }, null, []],
  ['the folder has an app', { hasApp: true }, null, [ASIDE]],
  ['--mms-config', { given: GIVEN }, 'given.properties', []],
  ['--mms-config beside an app', { given: GIVEN, isAppNamed: true }, 'given.properties', []],
  ['the variable', { env: VARIABLE, isAppNamed: true }, 'variable.properties', []],
  [
    'the variable takes precedence over --mms-config',
    { env: VARIABLE, given: GIVEN },
    'variable.properties',
    [
      'MMS_CONFIG_FILE=variable.properties takes precedence over --mms-config given.properties, which is not read',
    ],
  ],
  ['an empty variable is not set', { env: { MMS_CONFIG_FILE: '' } }, 'config.properties', []],
];

for (const [what, query, name, warnings] of ROWS)
  test(`${what}: ${name ?? 'none'}`, (t) => {
    const files = { 'config.properties': '', 'given.properties': '', 'variable.properties': '' };
    const folder = appFolder(t, files);
    const whole = { given: null, env: {}, folder, isAppNamed: false, hasApp: false, ...query };
    const config = name === null ? null : { name, path: join(folder, name) };
    assert.deepEqual(findConfig(whole), { config, warnings });
  });

for (const [path, message] of [
  ['none.properties', '--mms-config none.properties: no such file.'],
  [
    'conf/mine.properteis',
    '--mms-config conf/mine.properteis: no such file. Did you mean conf/mine.properties?',
  ],
  ['nowhere/mine.properties', '--mms-config nowhere/mine.properties: no such file.'],
  ['folder', '--mms-config folder: this is a folder; give a file.'],
  [
    'sagemaker',
    '--mms-config sagemaker: no such file. There is no such profile here: give the argument serve instead (docs/sagemaker.md).',
  ],
] as const)
  test(`--mms-config ${path} is refused`, (t) => {
    const folder = appFolder(t, { 'folder/a.txt': '', 'conf/mine.properties': '' });
    const given = { path, place: '--mms-config' };
    const query = { given, env: {}, folder, isAppNamed: false, hasApp: false };
    assert.throws(() => findConfig(query), { code: 'SERVE_CONFIG', message });
  });
