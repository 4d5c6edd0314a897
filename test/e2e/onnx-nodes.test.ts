/** Models on the versions of Node that users have: those that have Float16Array need care (`worker/load/onnx`). */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { npmInstall, run, INSTALL_LIMIT } from '../helpers/packed.js';
import { ROOT } from '../helpers/server.js';

const MAJORS = [20, 22, 24, 26];

/** The package of npm with the program of a version of Node. */
const NAME = `node-${process.platform}-${process.arch}`;

for (const major of MAJORS)
  test(`on Node ${major} every datatype goes in and comes out`, INSTALL_LIMIT, async (t) => {
    const node = await nodeOf(t, major);
    const file = `${ROOT}dist/test/processes/worker/onnx/datatypes.test.js`;
    const { stdout } = await run(node, ['--test-reporter=tap', '--test', file], {
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    });
    assert.match(stdout, /^# pass 26$/m);
    assert.match(stdout, /^# fail 0$/m);
  });

/** Path of the program of this version of Node; that of this process is not installed again. */
async function nodeOf(t: TestContext, major: number): Promise<string> {
  if (process.version.startsWith(`v${major}.`)) return process.execPath;
  const folder = mkdtempSync(join(tmpdir(), 'banana-node-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await npmInstall(folder, `${NAME}@${major}`);
  const node = join(folder, `node_modules/${NAME}/bin/node`);
  assert.ok(existsSync(node));
  return node;
}
