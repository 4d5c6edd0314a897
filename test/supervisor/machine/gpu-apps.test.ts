import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseApps } from '../../../supervisor/machine/nvidia-smi.js';

const rows: [title: string, text: string, apps: readonly (readonly [string, number, number])[]][] = [
  [
    'one line for each process and card',
    'GPU-a, 12, 512\nGPU-b, 12, 1\n',
    [
      ['GPU-a', 12, 512],
      ['GPU-b', 12, 1],
    ],
  ],
  ['a use that is not told is left out', 'GPU-a, 12, [N/A]\nGPU-a, 13, 4\n', [['GPU-a', 13, 4]]],
  ['no process', '\n', []],
];

for (const [title, text, apps] of rows)
  test(title, () => {
    assert.deepEqual(
      parseApps(text),
      apps.map(([uuid, pid, mib]) => ({ uuid, pid, bytes: mib * 2 ** 20 })),
    );
  });
