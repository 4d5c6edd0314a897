/** The paths that the front answers are the paths that no Potassium app may declare. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isReservedPath } from '../../../../protocol/reserved-paths.js';
import { MAIN_DIALECTS } from '../../../../supervisor/http/dialects/index.js';
import { ROOT } from '../../../helpers/server.js';

/** Dialects on whose paths a route of the app takes precedence. */
const GIVES_WAY = new Set(['gateway', 'mms', 'open-inference']);

test('every path of the server is reserved, except those where a route of the app takes precedence', () => {
  for (const { name, paths } of MAIN_DIALECTS.inOrder)
    for (const path of paths.keys()) assert.equal(isReservedPath(path), !GIVES_WAY.has(name), path);
});

const FREE = ['/', '/_kit', '/status/', '/statuses', '/healthcheck/x', '/__status__/', '/Livez'];

for (const path of FREE) test(`${path} is free for an app`, () => assert.equal(isReservedPath(path), false));

test('an app in Python may not declare the same paths (worker/python/potassium/reserved_paths.py)', () => {
  const source = readFileSync(`${ROOT}worker/python/potassium/reserved_paths.py`, 'utf8');
  const known = [...source.matchAll(/"(\/[^"]*)"/g)].map(([, path]) => path as string);
  assert.ok(known.includes('/status'));
  // A path with a slash at its end is a prefix.
  const isReservedInPython = (path: string): boolean =>
    known.some((one) => (one.endsWith('/') ? path.startsWith(one) : path === one));
  const paths = MAIN_DIALECTS.inOrder.flatMap((dialect) => [...dialect.paths.keys()]);
  for (const path of [...paths, ...FREE]) assert.equal(isReservedInPython(path), isReservedPath(path), path);
});
