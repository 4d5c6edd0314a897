/** The worker's own tests in Python, test/python, with every interpreter that is here. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { needs } from '../../helpers/needs.js';
import { PYTHON_VERSIONS, presentPythons } from '../../helpers/pythons.js';
import { ROOT } from '../../helpers/server.js';

const SKIP = needs('python3');
const PYTHONS = SKIP === false ? presentPythons() : [];

for (const { version, path } of PYTHONS) {
  test(
    `the units of the Python worker pass in Python ${version} (${path})`,
    { timeout: 300_000 },
    async () => {
      const { status, output } = await run(path);
      assert.equal(status, 0, output);
      assert.match(output, /^Ran [1-9]\d* tests/m);
    },
  );
}

test('the versions that the worker runs on are tried as far as they are here', { skip: SKIP }, (t) => {
  const absent = PYTHON_VERSIONS.filter((version) => !PYTHONS.some((python) => python.version === version));
  if (absent.length > 0) t.diagnostic(`not here, and not tried: Python ${absent.join(', ')}`);
  assert.notEqual(PYTHONS.length, 0);
});

function run(python: string): Promise<{ status: number | null; output: string }> {
  const child = spawn(python, ['-B', '-m', 'unittest', 'discover', '-s', 'test/python'], {
    cwd: ROOT,
    env: { ...process.env, PYTHONPATH: `${ROOT}worker/python` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, output })));
}
