/** A table of paths finds the pattern that a path matches, and its parameters. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathTable } from '../../../../supervisor/http/call/path-table.js';

const PATTERNS = [
  '/',
  '/x/all',
  '/x/{id}',
  '/models/{name}/{route*}',
  '/v1/models/{name}:predict',
  '/a.b/{id}',
];
const find = pathTable(Object.fromEntries(PATTERNS.map((path) => [path, path])));

for (const [path, pattern, params] of [
  ['/', '/', {}],
  ['/x/all', '/x/all', {}],
  ['/x/other', '/x/{id}', { id: 'other' }],
  ['/x/a b%2Fc', '/x/{id}', { id: 'a b%2Fc' }],
  ['/models/m/', '/models/{name}/{route*}', { name: 'm', route: '' }],
  ['/models/m/deep/er', '/models/{name}/{route*}', { name: 'm', route: 'deep/er' }],
  ['/models/m/two\nlines', '/models/{name}/{route*}', { name: 'm', route: 'two\nlines' }],
  ['/v1/models/m:predict', '/v1/models/{name}:predict', { name: 'm' }],
  ['/a.b/1', '/a.b/{id}', { id: '1' }],
] as const) {
  test(`${JSON.stringify(path)} matches ${pattern}`, () => {
    const found = find(path);
    assert.deepEqual({ value: found?.value, params: { ...found?.params } }, { value: pattern, params });
  });
}

for (const path of ['', '/x', '/x/', '/x/a/b', '/models/m', '/models//r', '/axb/1', 'x/all', '/X/all'])
  test(`${JSON.stringify(path)} matches no pattern`, () => assert.equal(find(path), null));
