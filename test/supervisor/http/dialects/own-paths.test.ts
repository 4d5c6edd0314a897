/** The paths that the front answers, and those that no Potassium app may declare, are one list. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReservedPath } from '../../../../protocol/reserved-paths.js';
import { GATEWAY_PATHS, OWN_PATHS } from '../../../../supervisor/http/dialects/own-paths.js';

test("every path of the server's own is reserved, but those of the gateway, where a route of the app wins", () => {
  for (const path of OWN_PATHS.keys()) assert.equal(isReservedPath(path), !GATEWAY_PATHS.has(path), path);
});

for (const path of ['/', '/_kit', '/status/', '/statuses', '/healthcheck/x', '/__status__/', '/Livez'])
  test(`${path} is free for an app`, () => assert.equal(isReservedPath(path), false));
