import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseUsage } from '../../../supervisor/machine/nvidia-smi.js';

const TWO_CARDS = `0, GPU-aaaa, 40960, 1024, 37, NVIDIA A100-SXM4-40GB
1, GPU-bbbb, 15360, [N/A], [N/A], Tesla T4, revised
`;

test('parseUsage reads MiB and percent, and returns null for unknown figures', () => {
  assert.deepEqual(parseUsage(TWO_CARDS), [
    {
      index: '0',
      uuid: 'GPU-aaaa',
      name: 'NVIDIA A100-SXM4-40GB',
      totalBytes: 40960 * 1024 ** 2,
      usedBytes: 1024 ** 3,
      utilization: 0.37,
    },
    {
      index: '1',
      uuid: 'GPU-bbbb',
      name: 'Tesla T4, revised',
      totalBytes: 15360 * 1024 ** 2,
      usedBytes: null,
      utilization: null,
    },
  ]);
});

test('parseUsage finds no card in other text', () => {
  assert.deepEqual(parseUsage('No devices were found\n'), []);
});
