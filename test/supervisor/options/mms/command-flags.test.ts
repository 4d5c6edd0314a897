/** Command lines of Multi Model Server's start scripts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refuseSecondFile, withFlagForEachModel } from '../../../../supervisor/options/mms/command-flags.js';
import { appFolder } from '../../../worker/app-folder.js';

for (const [given, read] of [
  ['--models a=a.mar b=b.mar c.mar --start', '--models a=a.mar --models b=b.mar --models c.mar --start'],
  ['--models a=https://x.example.com/a.mar b=b', '--models a=https://x.example.com/a.mar --models b=b'],
  ['--models all ./app.ts', '--models all ./app.ts'],
  ['--models a=a.mar ./app.ts', '--models a=a.mar ./app.ts'],
  ['./app.ts --models a.mar', './app.ts --models a.mar'],
  ['--models a.mar ./app.ts b.mar', '--models a.mar ./app.ts b.mar'],
  ['--models a=a --model b=b.ts', '--models a=a --model b=b.ts'],
  ['--model a=a.ts b=b.ts', '--model a=a.ts b=b.ts'],
  ['--models', '--models'],
  ['--models cats dogs --start', '--models cats --models dogs --start'],
  ['--models cats here', '--models cats here'],
] as const)
  test(`${given} is read as ${read}`, (t) => {
    const folder = appFolder(t, { 'here/app.ts': '' });
    assert.equal(withFlagForEachModel(given.split(' '), folder).join(' '), read);
  });

for (const [given, cure] of [
  ['--models a.py b.py', '--models a.py,b.py'],
  ['--port 0 --models a.ts ./b/b.ts c.ts --watch d.ts', '--models a.ts,./b/b.ts,c.ts'],
] as const)
  test(`${given} is refused, because the second file would be the app`, () => {
    assert.throws(() => refuseSecondFile(given.split(' ')), {
      code: 'SERVE_CONFIG',
      message: `${cure.replaceAll(',', ' ')}: separate models by commas: ${cure}. An app goes before the flags.`,
    });
  });

for (const given of [
  '--models a.mar ./app.ts',
  './app.ts --models a.py',
  '--models a.mar b.mar',
  '--models all app.py',
  '--models=a.py b.py',
])
  test(`${given} names models, and an app at most`, () => {
    assert.doesNotThrow(() => refuseSecondFile(given.split(' ')));
  });
