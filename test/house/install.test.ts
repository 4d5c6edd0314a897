/** `npm ci` in a clone needs nothing but the registry. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ROOT } from '../helpers/server.js';

test("npm does not run onnxruntime-node's install script, which downloads CUDA's libraries", () => {
  const read = (name: string): unknown => JSON.parse(readFileSync(`${ROOT}${name}`, 'utf8'));
  const { allowScripts } = read('package.json') as { allowScripts: Record<string, boolean> };
  assert.equal(allowScripts['onnxruntime-node'], false, 'for a new npm');
  const { packages } = read('package-lock.json') as { packages: Record<string, Record<string, unknown>> };
  const locked = packages['node_modules/onnxruntime-node'] ?? {};
  assert.ok(
    !('hasInstallScript' in locked),
    'for an older one: remove hasInstallScript from package-lock.json',
  );
});
