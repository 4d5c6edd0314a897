import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import type { Gpu } from '../../../supervisor/machine/nvidia-smi.js';
import {
  Devices,
  type DeviceWish,
  type Machine,
  type Placement,
} from '../../../supervisor/machine/placement.js';

function card(index: number): Gpu {
  const uuid = `GPU-${'abcd'[index]}000`;
  return { index, uuid, name: 'A100', card: uuid };
}

const SLICES: Gpu[] = [1, 2].map((n) => ({
  index: null,
  uuid: `MIG-${n}`,
  name: 'A100 MIG 3g',
  card: 'GPU-e000',
}));
const FOUR = [0, 1, 2, 3].map(card);

const MACHINE: DeviceWish & Machine = {
  workers: null,
  gpus: null,
  workersPerGpu: null,
  found: [],
  result: 'nvidia-smi was not found',
  inheritedMask: undefined,
  cores: 8,
};

const ROWS: readonly [
  what: string,
  input: Partial<DeviceWish & Machine>,
  devices: string[],
  threads: number,
][] = [
  ['a machine without GPUs: one worker, all cores', {}, ['cpu'], 8],
  ['--workers 3: the cores are shared', { workers: 3 }, ['cpu', 'cpu', 'cpu'], 2],
  ['more workers than cores: one thread each', { workers: 9 }, Array<string>(9).fill('cpu'), 1],
  ['GPUs: one worker each', { found: FOUR }, ['gpu 0', 'gpu 1', 'gpu 2', 'gpu 3'], 2],
  [
    '--workers-per-gpu 2: neighbours share a GPU',
    { found: FOUR.slice(0, 2), workersPerGpu: 2 },
    ['gpu 0', 'gpu 0', 'gpu 1', 'gpu 1'],
    2,
  ],
  ['--gpus 2,0: these, in this order', { found: FOUR, gpus: '2,0' }, ['gpu 2', 'gpu 0'], 4],
  ['--gpus 0,0: a GPU counts once', { found: FOUR, gpus: '0,0' }, ['gpu 0'], 8],
  ['--gpus first:2', { found: FOUR, gpus: 'first:2' }, ['gpu 0', 'gpu 1'], 4],
  ['--gpus first:9: all, if there are fewer', { found: FOUR.slice(0, 1), gpus: 'first:9' }, ['gpu 0'], 8],
  ['--gpus first:2 without any', { gpus: 'first:2' }, ['cpu'], 8],
  ['--gpus with the start of an id', { found: FOUR, gpus: 'GPU-c' }, ['gpu GPU-c000'], 8],
  [
    '--gpus with ids, and an index of a card that an id has named: it counts once',
    { found: FOUR, gpus: 'GPU-b000,GPU-c,1' },
    ['gpu GPU-b000', 'gpu GPU-c000'],
    4,
  ],
  ['MIG slices have no index, only an id', { found: SLICES }, ['gpu MIG-1', 'gpu MIG-2'], 4],
  ['--gpus none on a machine with GPUs', { found: FOUR, gpus: 'none', workers: 2 }, ['cpu', 'cpu'], 4],
  ['an inherited mask: only what it leaves', { found: FOUR, inheritedMask: '3,1' }, ['gpu 3', 'gpu 1'], 4],
  ['an inherited mask of ids', { found: FOUR, inheritedMask: 'GPU-b000' }, ['gpu 1'], 8],
  [
    'an inherited mask ends at the first unknown entry',
    { found: FOUR, inheritedMask: '1,9,2' },
    ['gpu 1'],
    8,
  ],
  [
    'an inherited mask of GPUs that nvidia-smi does not list is trusted',
    { inheritedMask: '3,5', gpus: '1' },
    ['gpu 5'],
    8,
  ],
  ['an empty inherited mask hides all GPUs', { found: FOUR, inheritedMask: '' }, ['cpu'], 8],
  [
    '--gpus counts within the inherited mask, as CUDA does',
    { found: FOUR, inheritedMask: '3,1', gpus: '1' },
    ['gpu 1'],
    8,
  ],
];

function placementsOf(given: DeviceWish & Machine): Placement[] {
  return new Devices(given).takeFirst(given);
}

for (const [what, input, devices, threads] of ROWS) {
  test(`first placements: ${what}`, () => {
    const machine = new Devices({ ...MACHINE, ...input });
    const placements = machine.takeFirst({ ...MACHINE, ...input });
    assert.deepEqual(
      placements.map(({ device }) => device),
      devices,
    );
    assert.equal(machine.threads, threads);
  });
}

test('a worker sees only its GPU, by the index of nvidia-smi', () => {
  const [, second] = placementsOf({ ...MACHINE, found: FOUR.slice(0, 2) });
  assert.equal(second?.gpu, '1');
  assert.deepEqual(second.env, {
    CUDA_VISIBLE_DEVICES: '1',
    HIP_VISIBLE_DEVICES: '1',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
  });
});

test('--gpus none hides every GPU; without it, GPUs that nvidia-smi does not list stay visible', () => {
  const [hidden] = placementsOf({ ...MACHINE, found: FOUR, gpus: 'none' });
  assert.deepEqual(hidden?.env, { CUDA_VISIBLE_DEVICES: '', HIP_VISIBLE_DEVICES: '' });
  const [plain] = placementsOf(MACHINE);
  assert.deepEqual(plain?.env, {});
});

for (const [what, input, message] of [
  ['--workers on a machine with GPUs', { found: FOUR, workers: 2 }, /--workers-per-gpu.*--gpus none/],
  ['--workers-per-gpu without GPUs', { workersPerGpu: 2 }, /no GPU was found.*--workers/],
  ['--gpus all without GPUs', { gpus: 'all' }, /no GPU was found: nvidia-smi was not found\. .*--gpus none/],
  ['--gpus 0 without GPUs', { gpus: '0' }, /no GPU was found: nvidia-smi was not found\. .*--gpus none/],
  ['--gpus with an id, without GPUs', { gpus: 'GPU-a' }, /no GPU was found.*--gpus none/],
  [
    '--gpus all under an empty mask',
    { found: FOUR, gpus: 'all', inheritedMask: '' },
    /CUDA_VISIBLE_DEVICES= was inherited/,
  ],
  ['an unknown index', { found: FOUR, gpus: '7' }, /no such GPU.*0 \(GPU-a000, A100\); 1/],
  [
    'an index beyond the inherited mask',
    { found: FOUR, gpus: '1', inheritedMask: '2' },
    /no such GPU.*inherited/,
  ],
  ['an unknown id', { found: FOUR, gpus: 'GPU-f' }, /no such GPU/],
  ['the start of several ids', { found: FOUR, gpus: 'GPU-' }, /4 ids begin like this/],
] as const) {
  test(`refuses ${what}, with a remedy`, () => {
    assert.throws(
      () => placementsOf({ ...MACHINE, ...input }),
      (error) => error instanceof ServeError && error.code === 'SERVE_CONFIG' && message.test(error.message),
    );
  });
}
