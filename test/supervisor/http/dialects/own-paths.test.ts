/** The paths that the front answers, and those that no Potassium app may declare, are one list. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReservedPath } from '../../../../protocol/reserved-paths.js';
import { MAIN_DIALECTS } from '../../../../supervisor/http/dialects/index.js';

/** On their paths a route of the app wins. */
const GIVES_WAY = new Set(['gateway', 'mms']);

test("every path of the server's own is reserved, but those where a route of the app wins", () => {
  for (const { name, paths } of MAIN_DIALECTS.inOrder)
    for (const path of paths.keys()) assert.equal(isReservedPath(path), !GIVES_WAY.has(name), path);
});

for (const path of ['/', '/_kit', '/status/', '/statuses', '/healthcheck/x', '/__status__/', '/Livez'])
  test(`${path} is free for an app`, () => assert.equal(isReservedPath(path), false));
