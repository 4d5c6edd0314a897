/** Runs the tests of the Python worker over bare frames with other interpreters than `python3`. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PYTHON_VERSIONS, type Python } from '../../helpers/pythons.js';
import { appFolder } from '../../worker/app-folder.js';
import { ONLY_VERSION_SENSITIVE } from './version-sensitive.js';

const MAIN = fileURLToPath(new URL('python-main.test.js', import.meta.url));
/** Modules that the process loads beside it. */
const OTHERS = ['python-sockets.test.js', '../../wire/python.test.js'].map(
  (file) => `--import=${new URL(file, import.meta.url).href}`,
);

/** The oldest runs every test, the others what a version of Python may break. */
const EVERY_TEST = PYTHON_VERSIONS[0];

/** Defines a test for each of them. */
export function testOverFrames(pythons: readonly Python[]): void {
  for (const { version, path } of pythons) {
    const isEveryTest = version === EVERY_TEST;
    const title = isEveryTest ? 'keeps its promises in' : 'keeps the promises that depend on';
    test(`the Python worker ${title} Python ${version} (${path})`, { timeout: 1_200_000 }, async (t) => {
      const { status, output } = await run(t, path, isEveryTest ? {} : ONLY_VERSION_SENSITIVE);
      assert.equal(status, 0, output);
      const skipped = isEveryTest ? '0' : '[1-9]\\d*';
      assert.match(
        output,
        new RegExp(`^# pass [1-9]\\d*\\n# fail 0\\n# cancelled 0\\n# skipped ${skipped}$`, 'm'),
      );
    });
  }
}

/** Runs all files in one process, without a runner, whose `python3` is this interpreter. */
function run(
  t: TestContext,
  python: string,
  chosen: Readonly<Record<string, string>>,
): Promise<{ status: number | null; output: string }> {
  const folder = appFolder(t, { python3: `#!/bin/sh\nexec '${python}' "$@"\n` });
  chmodSync(join(folder, 'python3'), 0o755);
  const PATH = `${folder}${delimiter}${process.env['PATH'] ?? ''}`;
  // In the process of a runner, tests report in a form of its own.
  const env = { ...process.env, ...chosen, PATH, NODE_TEST_CONTEXT: undefined };
  const args = ['--test-reporter=tap', ...OTHERS, MAIN];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, output })));
}
