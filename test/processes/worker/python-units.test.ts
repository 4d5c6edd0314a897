/**
 * The unit tests of the Python worker, test/python, with the oldest and the newest interpreter that is here, and those
 * between that other tests run with; python-versions.test.ts and its twin try every version.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { needs } from '../../helpers/needs.js';
import { PYTHON_VERSIONS, otherPythons, presentPythons, type Python } from '../../helpers/pythons.js';
import { ROOT } from '../../helpers/server.js';

const SKIP = needs('python3');
const PYTHONS = SKIP === false ? presentPythons() : [];
const OTHERS = new Set(SKIP === false ? otherPythons().map(({ version }) => version) : []);
const PRESENT = PYTHON_VERSIONS.filter((version) => PYTHONS.some((python) => python.version === version));

function isTried({ version }: Python): boolean {
  return !OTHERS.has(version) || version === PRESENT[0] || version === PRESENT.at(-1);
}

for (const { version, path } of PYTHONS.filter(isTried))
  test(
    `the units of the Python worker pass in Python ${version} (${path})`,
    { timeout: 1_200_000 },
    async () => {
      // What is slow and the same in every Python is skipped in all but the version of `python3`.
      const env = OTHERS.has(version) ? { BANANA_TEST_OTHER_PYTHON: '1' } : {};
      const { status, output } = await run(path, env);
      assert.equal(status, 0, output);
      assert.match(output, /^Ran [1-9]\d* tests/m);
    },
  );

test('the versions that the worker runs on are tried as far as they are here', { skip: SKIP }, (t) => {
  const absent = PYTHON_VERSIONS.filter((version) => !PRESENT.includes(version));
  if (absent.length > 0) t.diagnostic(`not here, and not tried: Python ${absent.join(', ')}`);
  assert.notEqual(PYTHONS.length, 0);
});

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
