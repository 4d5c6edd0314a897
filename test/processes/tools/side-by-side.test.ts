/** The scripts of `npm run check` run side by side: one that fails is never lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROOT, runCommand } from '../../helpers/server.js';

const TOOL = `${ROOT}dist/test/tools/side-by-side.js`;

test('scripts side by side fail if one of them fails, and name it', async (t) => {
  // npm has an `env` of its own, which every package can run.
  const command = runCommand([TOOL, 'env', 'no-such-script'], { t, command: process.execPath });
  assert.equal((await command.ended).code, 1, command.stderr());
  assert.match(command.stdout(), /^== env, \d+ s$/m);
  assert.match(command.stdout(), /^== failed: no-such-script$/m);
});

test('scripts side by side pass if each of them passes', async (t) => {
  const command = runCommand([TOOL, 'env'], { t, command: process.execPath });
  assert.equal((await command.ended).code, 0, command.stderr());
  assert.doesNotMatch(command.stdout(), /failed/);
});
