/** A log of commits that was damaged after it was written: the start says so, and a torn end is no damage. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { databaseFile } from '../../../../../supervisor/jobs/local/job-database.js';
import { newStoredJob } from '../../../../supervisor/jobs/stored-jobs.js';
import { copyOf, openTable, scratch } from '../../../../supervisor/jobs/local/tables.js';

const LIMITS = { retentionMs: 1e9, maxBytes: 1e9 };
const JOBS = 30;
const FRAME_BYTES = 4096 + 24;

/** A folder as a kill has left it: its log has a commit for each job. */
function killedFolder(): string {
  const folder = scratch();
  const loop = openTable(folder, LIMITS);
  const { table } = loop;
  for (let i = 0; i < JOBS; i += 1) {
    const body = { bytes: Buffer.alloc(100), file: null };
    table.transaction(() =>
      table.accept({ ...newStoredJob({ id: `job ${i}`, createdAt: Date.now() }), body }),
    );
  }
  const copy = copyOf(folder);
  loop.close();
  return copy;
}

function jobsIn(folder: string): number {
  const loop = openTable(folder, LIMITS);
  const { table } = loop;
  const { records } = table.list({ state: null, limit: 100, from: null });
  loop.close();
  return records.length;
}

function filesOf(folder: string): string {
  const names = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isFile());
  return names.map(({ name }) => name + readFileSync(join(folder, name), 'latin1')).join();
}

type Harm = (log: Buffer, file: string) => Buffer;

const HARMS: readonly (readonly [string, Harm, RegExp, least: number])[] = [
  ['40 bits', (log) => flipped(log, 40), /a commit in its log is broken, and others follow it/, 0],
  ['one bit of the first commit', (log) => flippedAt(log, 5000), /is broken/, 0],
  [
    'one bit of a commit near the end',
    (log) => flippedAt(log, log.length - 40 * FRAME_BYTES),
    /is broken/,
    1,
  ],
  ['the magic number', (log) => flippedAt(log, 0), /the header of its log does not fit what follows/, 0],
  ['a salt in the header', (log) => flippedAt(log, 17), /the header of its log/, 0],
  [
    'the file, which is empty',
    (log, file) => {
      writeFileSync(file, '');
      return log;
    },
    /the file is empty, its log is not/,
    0,
  ],
];

for (const [title, harm, why, least] of HARMS)
  test(`local: damage of ${title} after a kill stops the start, which leaves all as it is, and says how to start anyway`, () => {
    const folder = killedFolder();
    const file = databaseFile(folder);
    writeFileSync(`${file}-wal`, harm(readFileSync(`${file}-wal`), file));
    const before = filesOf(folder);
    let message = '';
    assert.throws(
      () => openTable(folder, LIMITS),
      (error: Error) => (message = error.message) !== '' && error.name === 'CannotOpen',
    );
    assert.match(message, why);
    assert.ok(filesOf(folder) === before, 'the files have changed');
    execFileSync('sh', ['-c', message.slice(message.indexOf('after: ') + 'after: '.length)]);
    const jobs = jobsIn(folder);
    assert.ok(jobs >= least && jobs < JOBS, `${jobs} jobs`);
  });

test('local: a log whose last commit is torn, and one that is cut, start with the commits before', () => {
  const folder = killedFolder();
  const log = readFileSync(`${databaseFile(folder)}-wal`);
  for (const torn of [flippedAt(log, log.length - 9), log.subarray(0, log.length - 9)]) {
    const copy = copyOf(folder);
    writeFileSync(`${databaseFile(copy)}-wal`, torn);
    assert.equal(jobsIn(copy), JOBS - 1);
  }
  writeFileSync(`${databaseFile(folder)}-wal`, log.subarray(0, log.length / 2));
  assert.ok(jobsIn(folder) < JOBS);
});

test('local: a log that is used anew has frames of an earlier use behind its end, which are no damage', () => {
  const folder = scratch();
  const loop = openTable(folder, LIMITS);
  const { database, table } = loop;
  const accept = (id: string): unknown => {
    const body = { bytes: Buffer.alloc(100), file: null };
    return table.transaction(() => table.accept({ ...newStoredJob({ id, createdAt: Date.now() }), body }));
  };
  for (let i = 0; i < JOBS; i += 1) accept(`job ${i}`);
  database.exec('PRAGMA wal_checkpoint(RESTART)');
  accept('last');
  const copy = copyOf(folder);
  assert.equal(jobsIn(copyOf(copy)), JOBS + 1);
  // The next commit is torn: what is behind it is older.
  const log = readFileSync(`${databaseFile(copy)}-wal`);
  writeFileSync(`${databaseFile(copy)}-wal`, flippedAt(log, 100));
  assert.equal(jobsIn(copy), JOBS);
  loop.close();
  rmSync(copy, { recursive: true });
});

function flippedAt(log: Buffer, at: number): Buffer {
  const copy = Buffer.from(log);
  copy.writeUInt8(copy.readUInt8(at) ^ 4, at);
  return copy;
}

/** Bits at places that are always the same, over all of the log behind its header. */
function flipped(log: Buffer, bits: number): Buffer {
  let copy = log;
  for (let i = 0; i < bits; i += 1) copy = flippedAt(copy, 100 + ((i * 7919 * 131) % (log.length - 200)));
  return copy;
}
