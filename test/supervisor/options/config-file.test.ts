import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { readConfigFile } from '../../../supervisor/options/read-objects.js';

function folder(t: TestContext, files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'banana-config-'));
  t.after(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    if (name.endsWith('/')) mkdirSync(join(path, name));
    else writeFileSync(join(path, name), text);
  }
  return path;
}

test('a folder without a config file has no options', (t) => {
  const { source, app } = readConfigFile(folder(t, { 'package.json': '{ "name": "x" }' }));
  assert.deepEqual([source.values, app], [{}, undefined]);
  assert.deepEqual(readConfigFile(folder(t, {})).source.values, {});
});

for (const [file, text, where] of [
  ['banana.json', '{ "app": "./my.ts", "queueSize": 3 }', 'banana.json: queueSize'],
  [
    'package.json',
    '{ "banana": { "app": "./my.ts", "queueSize": 3 } }',
    'package.json, key "banana": queueSize',
  ],
] as const) {
  test(`${file} gives options and the app, and errors name the file`, (t) => {
    const { source, app } = readConfigFile(folder(t, { [file]: text }));
    assert.deepEqual(source.values, { queueSize: 3 });
    assert.equal(app, './my.ts');
    assert.equal(source.where('queueSize'), where);
  });
}

const REFUSED: readonly (readonly [what: string, files: Record<string, string>, message: RegExp])[] = [
  [
    'both files',
    { 'banana.json': '{}', 'package.json': '{ "banana": {} }' },
    /^banana\.json and the "banana" key of package\.json both hold options; keep one\.$/,
  ],
  ['broken JSON', { 'banana.json': '{ "port": }' }, /^banana\.json is not valid JSON: /],
  ['broken JSON', { 'package.json': '{' }, /^package\.json is not valid JSON: /],
  [
    'broken JSON with a secret, which is not quoted',
    { 'banana.json': '{ "webhookSecret": "whsec_hunter2" "port": 1 }' },
    /^banana\.json is not valid JSON: (?!.*hunter2)/,
  ],
  ['an array', { 'banana.json': '[]' }, /^banana\.json must contain an object/],
  [
    'a string',
    { 'package.json': '{ "banana": "./app.ts" }' },
    /^package\.json, key "banana" must contain an object/,
  ],
  ['a folder of that name', { 'banana.json/': '' }, /^banana\.json cannot be read: .*EISDIR/],
  [
    'an app that is not a path',
    { 'banana.json': '{ "app": 5 }' },
    /^banana\.json: app: 5 is not allowed; give the path of the app\.$/,
  ],
  [
    'an empty app',
    { 'package.json': '{ "banana": { "app": " " } }' },
    /app: " " is not allowed; give the path/,
  ],
];

for (const [what, files, message] of REFUSED) {
  test(`a config file with ${what} is refused: ${Object.keys(files).join(', ')}`, (t) => {
    assert.throws(() => readConfigFile(folder(t, files)), { code: 'SERVE_CONFIG', message });
  });
}
