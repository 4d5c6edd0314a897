/** Models on the versions of Node that users have: those that have Float16Array need care (`worker/load/onnx`). */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { npmInstall, run, INSTALL_LIMIT } from '../helpers/packed.js';
import { ROOT } from '../helpers/server.js';

/** The first with Float16Array. `.ci/run` has the oldest version that we support, and the newest LTS. */
const MAJOR = 24;

/** The package of npm with the program of a version of Node. */
const NAME = `node-${process.platform}-${process.arch}`;

test(
  `on Node ${MAJOR} every datatype goes in and comes out`,
  { ...INSTALL_LIMIT, skip: process.version.startsWith(`v${MAJOR}.`) },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-node-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    await npmInstall(folder, `${NAME}@${MAJOR}`);
    const node = join(folder, `node_modules/${NAME}/bin/node`);
    assert.ok(existsSync(node));
    const file = `${ROOT}dist/test/processes/worker/onnx/datatypes.test.js`;
    // Without a runner, in this one process.
    const { stdout } = await run(node, ['--test-reporter=tap', file], {
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    });
    assert.match(stdout, /^# pass 26$/m);
    assert.match(stdout, /^# fail 0$/m);
  },
);
