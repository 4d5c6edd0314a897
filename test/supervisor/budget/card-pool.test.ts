import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CardPool } from '../../../supervisor/budget/card-pool.js';
import type { CardMemory } from '../../../supervisor/machine/nvidia-smi.js';

function card(usedBytes: number, byGroup: Readonly<Record<number, number>> = {}): CardMemory {
  const groups = new Map(Object.entries(byGroup).map(([id, bytes]) => [Number(id), bytes]));
  return { index: '0', uuid: 'GPU-aaaa-bbbb', totalBytes: 1000, usedBytes, byGroup: groups };
}

/** Worker 7 has started, and the card uses 400 more than the 100 of others. */
function withOne(): CardPool {
  const pool = new CardPool(card(100), 600);
  pool.starts({ pid: 7 });
  pool.read(card(500), 1000, new Set([7]));
  return pool;
}

test('a card is that of a device by its index, or by the beginning of its id', () => {
  const pool = new CardPool(card(0), 600);
  const devices = ['gpu 0', 'gpu GPU-aaaa', 'gpu 1', 'gpu GPU-bbbb', 'cpu'];
  assert.deepEqual(
    devices.filter((device) => pool.isOf(device)),
    ['gpu 0', 'gpu GPU-aaaa'],
  );
});

test('a budget is at most the card', () => {
  assert.equal(new CardPool(card(0), 5000).limitBytes, 1000);
});

describe('where the driver does not tell processes', () => {
  test('a worker holds what the card uses more since its start was allowed', () => {
    const pool = withOne();
    assert.deepEqual([pool.bytesOf(7), pool.ownBytes, pool.usedBytes], [400, 400, 400]);
    pool.read(card(450), 2000, new Set([7]));
    assert.equal(pool.bytesOf(7), 400, 'its peak');
    assert.equal(pool.ownBytes, 350);
  });

  test('the use of a card without our workers is that of others', () => {
    const pool = withOne();
    pool.read(card(300), 2000, new Set());
    pool.starts({ pid: 8 });
    pool.read(card(500), 3000, new Set([8]));
    assert.deepEqual([pool.bytesOf(8), pool.ownBytes], [200, 200]);
  });
});

test('where it does, a worker holds what its processes use', () => {
  const pool = new CardPool(card(100), 600);
  pool.starts({ pid: 7 });
  pool.read(card(900, { 7: 350, 9: 400 }), 1000, new Set([7]));
  assert.deepEqual([pool.bytesOf(7), pool.ownBytes], [350, 350]);
  assert.equal(pool.usedBytes, 500, 'only 100 are free on the card');
});

describe('the memory of a worker that has ended', () => {
  const cases: [string, used: number, atMs: number, left: number][] = [
    ['is not back while the driver says that it is used', 500, 9000, 1],
    ['is back when the driver says so', 120, 1600, 0],
    ['is not back if others freed as little', 400, 1600, 1],
    ['counts as the driver says after 10 s', 500, 11_500, 0],
  ];
  for (const [title, used, atMs, left] of cases)
    test(title, () => {
      const pool = withOne();
      pool.died(7, 'm@1', 1500);
      pool.read(card(used), atMs, new Set());
      assert.equal(pool.owed.length, left);
    });
});

test('a process that held nothing of the card leaves nothing', () => {
  const pool = withOne();
  pool.died(8, 'm@1', 1500);
  assert.deepEqual(pool.owed, []);
});
