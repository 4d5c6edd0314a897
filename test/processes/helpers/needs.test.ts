/** The tests on a machine that has only Node and npm. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ROOT } from '../../helpers/server.js';

interface Run {
  readonly status: number;
  readonly output: string;
}

/** Runs the tests that need a Redis where no program can be found. */
function runWithoutPrograms(t: TestContext, env: Record<string, string>): Promise<Run> {
  const nothing = mkdtempSync(join(tmpdir(), 'banana-no-programs-'));
  t.after(() => rmSync(nothing, { recursive: true }));
  const args = ['--test', '--test-reporter=tap', `${ROOT}dist/test/processes/worker/api/store/redis.test.js`];
  const { NODE_TEST_CONTEXT: _, BANANA_TEST_ALL: __, ...rest } = process.env;
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env: { ...rest, PATH: nothing, ...env } }, (error, stdout) => {
      resolve({ status: error === null ? 0 : Number(error.code), output: stdout });
    });
  });
}

const LINE = 'redis-server is missing: apt-get install redis-server';

test('a test with a missing program is skipped, with a line on how to install it', async (t) => {
  const { status, output } = await runWithoutPrograms(t, {});
  assert.equal(status, 0, output);
  assert.match(output, new RegExp(`^ok \\d+ - .*# SKIP ${LINE}$`, 'm'));
  assert.match(output, /^# pass [1-9]/m, 'what needs no program was run');
});

test('if every test must run, a missing program is a failure with the same line', async (t) => {
  const { status, output } = await runWithoutPrograms(t, { BANANA_TEST_ALL: '1' });
  assert.equal(status, 1, output);
  assert.ok(output.includes(LINE), output);
});
