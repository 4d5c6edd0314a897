/** The paths that the front answers are the paths that no Potassium app may declare. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReservedPath } from '../../../../protocol/reserved-paths.js';
import { MAIN_DIALECTS } from '../../../../supervisor/http/dialects/index.js';

/** Dialects on whose paths a route of the app takes precedence. */
const GIVES_WAY = new Set(['cog', 'gateway', 'mms', 'open-inference', 'kserve-v1', 'openai', 'rerank', 'v1']);

test('every path of the server is reserved, except those where a route of the app takes precedence', () => {
  for (const { name, paths } of MAIN_DIALECTS.inOrder)
    for (const path of paths.keys()) assert.equal(isReservedPath(path), !GIVES_WAY.has(name), path);
});

const FREE = ['/', '/_kit', '/status/', '/statuses', '/healthcheck/x', '/__status__/', '/Livez'];

for (const path of FREE) test(`${path} is free for an app`, () => assert.equal(isReservedPath(path), false));
