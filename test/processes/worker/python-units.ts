/** Runs the unit tests of the Python worker, test/python, with the interpreters that are here. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { otherPythons, type Python } from '../../helpers/pythons.js';
import { ROOT } from '../../helpers/server.js';

/** Defines a test for each of them. What is slow and the same in every Python is skipped in all but the version of `python3`. */
export function testUnits(pythons: readonly Python[]): void {
  const others = new Set(otherPythons().map(({ version }) => version));
  for (const { version, path } of pythons) {
    test(
      `the units of the Python worker pass in Python ${version} (${path})`,
      { timeout: 300_000 },
      async () => {
        const { status, output } = await run(
          path,
          others.has(version) ? { BANANA_TEST_OTHER_PYTHON: '1' } : {},
        );
        assert.equal(status, 0, output);
        assert.match(output, /^Ran [1-9]\d* tests/m);
      },
    );
  }
}

function run(python: string, env: NodeJS.ProcessEnv): Promise<{ status: number | null; output: string }> {
  const child = spawn(python, ['-B', '-m', 'unittest', 'discover', '-s', 'test/python'], {
    cwd: ROOT,
    env: { ...process.env, ...env, PYTHONPATH: `${ROOT}worker/python` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, output })));
}
