/** Devices of slots whose workers stand by. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Devices } from '../../../supervisor/machine/placement.js';
import type { Gpu } from '../../../supervisor/machine/nvidia-smi.js';

const CARDS: Gpu[] = [0, 1].map((index) => ({
  index,
  uuid: `GPU-${index}`,
  name: 'A100',
  card: `GPU-${index}`,
}));
const WISH = { workers: null, gpus: null, workersPerGpu: null };

function devicesWith(found: readonly Gpu[]): Devices {
  return new Devices({ found, result: 'a test', inheritedMask: undefined, cores: 4 });
}

test('slots that stand by share no cores', () => {
  const devices = devicesWith([]);
  devices.take(WISH, 3);
  devices.noteStandbys(WISH, 1);
  assert.equal(devices.threads, 2);
  devices.noteStandbys(WISH, 0);
  assert.equal(devices.threads, 1);
});

test('a GPU is free while it has fewer slots of all models than --workers-per-gpu, the CPU always', () => {
  const devices = devicesWith(CARDS);
  devices.take(WISH, 1);
  const places = (wish = WISH): unknown => devices.takeIfFree(wish)?.device ?? null;
  assert.deepEqual([places(), places()], ['gpu 1', null]);
  assert.deepEqual(places({ ...WISH, workersPerGpu: 2 } as never), 'gpu 0');
  assert.equal(places({ ...WISH, gpus: 'none' } as never), 'cpu');
});
