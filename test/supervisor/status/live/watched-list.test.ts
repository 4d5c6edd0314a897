/** Looks at the GPUs for the page: never two at once, not too often, and again after one that failed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GpuUsage } from '../../../../supervisor/machine/gpu-usage.js';
import { GpuWatch } from '../../../../supervisor/status/live/gpu-watch.js';

const CARD = { index: '0', uuid: 'u', name: 'card', totalBytes: 1, usedBytes: 1, utilization: 0 };

test('a look begins when the last one is over and five seconds old', async () => {
  const pending: ((gpus: readonly GpuUsage[]) => void)[] = [];
  const watch = new GpuWatch(() => new Promise((resolve) => pending.push(resolve)));
  watch.look(0);
  watch.look(6000);
  assert.equal(pending.length, 1, 'the first look goes on');
  pending[0]?.([CARD]);
  await Promise.resolve();
  assert.deepEqual(watch.gpus, [CARD]);
  watch.look(4999);
  assert.equal(pending.length, 1);
  watch.look(5000);
  assert.equal(pending.length, 2);
});

test('a look that fails leaves the figures out, and the next one is tried', async () => {
  let looks = 0;
  const watch = new GpuWatch(() => {
    looks += 1;
    return looks === 1 ? Promise.reject(new Error('EMFILE')) : Promise.resolve([CARD]);
  });
  watch.look(0);
  await new Promise(setImmediate);
  assert.deepEqual(watch.gpus, []);
  watch.look(5000);
  await new Promise(setImmediate);
  assert.deepEqual(watch.gpus, [CARD]);
});
