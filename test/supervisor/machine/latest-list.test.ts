/** A list that is read again and again: never twice at once, not too often, and again after a failure. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LatestList } from '../../../supervisor/machine/latest-list.js';

interface Reading {
  resolve(entries: readonly string[]): void;
  reject(error: Error): void;
}

function watched(pauseMs?: number): { list: LatestList<string>; readings: Reading[] } {
  const readings: Reading[] = [];
  const read = (): Promise<readonly string[]> =>
    new Promise((resolve, reject) => void readings.push({ resolve, reject }));
  return { list: new LatestList(read, pauseMs), readings };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a reading begins when the last one is over and its pause has passed', async () => {
  const { list, readings } = watched(5000);
  list.look(0);
  list.look(6000);
  assert.equal(readings.length, 1, 'the first reading goes on');
  readings[0]?.resolve(['card']);
  await turn();
  assert.deepEqual(list.latest, ['card']);
  list.look(4999);
  assert.equal(readings.length, 1);
  list.look(5000);
  assert.equal(readings.length, 2);
});

test('the list is that of the last reading; one that fails is tried again, and none is waited for', async () => {
  const { list, readings } = watched();
  list.look(0);
  list.look(0);
  assert.deepEqual([readings.length, list.latest], [1, []]);
  const entries = ['job'];
  readings[0]?.resolve(entries);
  await turn();
  assert.equal(list.latest, entries);
  list.look(0);
  readings[1]?.reject(new Error('away'));
  await turn();
  assert.equal(list.latest, entries);
  list.look(0);
  assert.equal(readings.length, 3);
  list.forget();
  assert.deepEqual(list.latest, []);
});
