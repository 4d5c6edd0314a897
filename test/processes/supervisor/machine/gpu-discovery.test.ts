import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { discoverGpus, parseList } from '../../../../supervisor/machine/nvidia-smi.js';

const TWO_CARDS = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
GPU 1: Tesla T4 (UUID: GPU-b06ef3b4-2f02-4bb5-a5a5-3b8a4e0e9a11)
`;

const SLICED = `GPU 0: NVIDIA A100 (UUID: GPU-aaaa)
  MIG 3g.20gb     Device  0: (UUID: MIG-1111)
  MIG 2g.10gb     Device  1: (UUID: MIG-2222)
GPU 1: NVIDIA A100 (UUID: GPU-bbbb)
`;

test('parseList reads cards', () => {
  const gpus = parseList(TWO_CARDS);
  assert.deepEqual(
    gpus.map(({ index, name }) => [index, name]),
    [
      [0, 'NVIDIA A100-SXM4-40GB'],
      [1, 'Tesla T4'],
    ],
  );
  assert.equal(gpus[0]?.uuid, 'GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77');
  assert.equal(gpus[0].card, gpus[0].uuid);
});

test('parseList returns the slices of a divided card instead of the card', () => {
  assert.deepEqual(
    parseList(SLICED).map(({ index, uuid, card }) => [index, uuid, card]),
    [
      [null, 'MIG-1111', 'GPU-aaaa'],
      [null, 'MIG-2222', 'GPU-aaaa'],
      [1, 'GPU-bbbb', 'GPU-bbbb'],
    ],
  );
});

for (const text of [
  '',
  'No devices were found\n',
  '  MIG 3g.20gb Device 0: (UUID: MIG-1)\n',
  'GPU x: ?\n\0\n',
]) {
  test(`parseList finds nothing in ${JSON.stringify(text)}`, () => assert.deepEqual(parseList(text), []));
}

test('without nvidia-smi there is no GPU and no problem', async () => {
  const result = 'nvidia-smi was not found';
  assert.deepEqual(await discoverGpus({ PATH: '/nowhere' }), { gpus: [], problem: null, result });
});

test('nvidia-smi is run with -L', async (t) => {
  const env = withNvidiaSmi(t, `[ "$1" = -L ] && cat <<'END'\n${TWO_CARDS}END\n`);
  const { gpus, problem } = await discoverGpus(env);
  assert.equal(problem, null);
  assert.equal(gpus.length, 2);
});

test('the problem of a failing nvidia-smi has its message', async (t) => {
  const env = withNvidiaSmi(
    t,
    'echo "NVIDIA-SMI has failed because it couldn\'t talk to the driver."; exit 9\n',
  );
  const { gpus, problem } = await discoverGpus(env);
  assert.deepEqual(gpus, []);
  assert.match(problem ?? '', /exit code 9.*couldn't talk to the driver/);
});

test(
  'an nvidia-smi that hangs is not awaited, not even if a child keeps its output open',
  { timeout: 240_000 },
  async (t) => {
    const env = withNvidiaSmi(t, '(while [ -e "$0" ]; do sleep 0.1; done) & wait\n'); // until this test ends
    const { gpus, problem } = await discoverGpus(env, undefined, 200);
    assert.deepEqual(gpus, []);
    assert.match(problem ?? '', /did not answer in 200 ms/);
  },
);

/** An environment whose PATH begins with an `nvidia-smi` that is this shell script. */
function withNvidiaSmi(t: TestContext, script: string): NodeJS.ProcessEnv {
  const folder = mkdtempSync(join(tmpdir(), 'banana-gpu-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'nvidia-smi'), `#!/bin/sh\n${script}`);
  chmodSync(join(folder, 'nvidia-smi'), 0o755);
  return { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}` };
}
