/** On a disk with little room, a local store keeps a part of it for the jobs that it has accepted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DiskRoom,
  canEverFit,
  fits,
  reserveOf,
  type DiskFigures,
  type Need,
} from '../../../../supervisor/jobs/local/disk-room.js';

const MIB = 1024 ** 2;

/** 12 MiB, of which 3 are kept from new jobs, and half of these from results. */
const DISK: DiskFigures = {
  totalBytes: 12 * MIB,
  freeBytes: 5 * MIB,
  tableBytes: 2 * MIB,
  owedBytes: 1 * MIB,
  unusedBytes: 0,
  logBytes: 0,
};

const file = (of: Need['of'], mib: number): Need => ({ of, rowBytes: 0, fileBytes: mib * MIB });
const row = (of: Need['of'], mib: number): Need => ({ of, rowBytes: mib * MIB, fileBytes: 0 });

test('the reserve is a quarter of the disk, 16 MiB at most; jobs leave all of it, results half', () => {
  assert.deepEqual([reserveOf(12 * MIB), reserveOf(1e12)], [3 * MIB, 16 * MIB]);
  assert.deepEqual([fits(DISK, file('job', 1)), fits(DISK, file('job', 1.01))], [true, false]);
  assert.deepEqual([fits(DISK, file('result', 2.5)), fits(DISK, file('result', 2.51))], [true, false]);
});

test('rows need room in the table, where others have left some, and in the log', () => {
  assert.deepEqual([fits(DISK, row('job', 1)), fits(DISK, row('job', 1.01))], [true, false]);
  const full = { ...DISK, freeBytes: 2 * MIB }; // 1 is left after the checkpoint
  assert.deepEqual([fits(full, row('job', 0.1)), fits(full, row('result', 0.1))], [false, false]);
  const reused = { ...full, unusedBytes: 4 * MIB };
  assert.deepEqual([fits(reused, row('result', 1)), fits(reused, row('result', 1.01))], [true, false]);
  assert.deepEqual(
    [fits(reused, row('job', 1)), fits({ ...reused, unusedBytes: MIB }, row('job', 0.1))],
    [true, false],
  );
  assert.equal(fits({ ...reused, freeBytes: 1.7 * MIB }, row('result', 0.1)), false, 'the log needs its own');
});

test('a result that an empty disk could hold may fit later, a larger one never', () => {
  assert.deepEqual(
    [7, 7.01].map((mib) => canEverFit(DISK, file('result', mib))),
    [true, false],
  );
});

test('what one transaction takes fits into the log together, and what is dropped makes room', () => {
  let disk: DiskFigures | null = { ...DISK, freeBytes: 2.5 * MIB, unusedBytes: 4 * MIB }; // 1.5 are left for the log
  const room = new DiskRoom(() => disk);
  const none = (): null => null;
  const begin = (): void => room.begin();
  const taken = [row('job', 0.8), row('job', 0.8)].map((need) => room.take(need, none));
  begin();
  assert.deepEqual([...taken, room.take(row('job', 0.8), none)], [true, false, true]);
  disk = DISK;
  begin();
  const files = [MIB, MIB, MIB];
  assert.equal(
    room.take(file('job', 2.9), () => files.pop() ?? null),
    true,
  );
  assert.equal(files.length, 1, 'no more than it needs');
  disk = null;
  assert.equal(room.take(file('job', 1e6), none), true, 'a system that does not tell');
});

test('once a small job is refused, all are until a little more is free', () => {
  const disk = { ...DISK, freeBytes: 4 * MIB };
  const room = new DiskRoom(() => disk);
  const takes = (bytes: number): boolean => {
    room.begin();
    disk.freeBytes = bytes;
    return room.take({ of: 'job', rowBytes: 1024, fileBytes: 0 }, () => null);
  };
  const least = 4 * MIB + 32 * 1024;
  assert.deepEqual([least, least - 1, least, least + (3 * MIB) / 64, least].map(takes), [
    true,
    false,
    false,
    true,
    true,
  ]);
});
