/**
 * Power loss: the disk has all that was synced by the last answer; of what was written after that it has any part, in any
 * order, or other bytes. Then every answered change is there, and the one after it is there whole or not at all.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JobTable } from '../../../../supervisor/jobs/local/job-table.js';
import { databaseFile } from '../../../../supervisor/jobs/local/job-database.js';
import { HEAD, newStoredJob } from '../stored-jobs.js';
import { openTable, scratch } from './tables.js';

const LIMITS = { retentionMs: 1e9, maxBytes: 1e9 };
const TARGET = { model: 'm', version: '1', isDefault: true, routes: new Map([['/', 2]]) };

/**
 * A disk writes whole sectors. One whose end is written keeps the bytes at its beginning, as SQLite takes for granted
 * (https://sqlite.org/psow.html).
 */
const SECTOR_BYTES = 512;

interface Disk {
  readonly database: Buffer;
  readonly log: Buffer;
}

function diskOf(folder: string): Disk {
  const file = databaseFile(folder);
  return { database: readFileSync(file), log: readFileSync(`${file}-wal`) };
}

/** The jobs of the table on this disk, by id. */
function jobsOn({ database, log }: Disk, ids: readonly string[]): string {
  const folder = join(scratch(), 'lost');
  mkdirSync(folder);
  writeFileSync(databaseFile(folder), database);
  writeFileSync(`${databaseFile(folder)}-wal`, log);
  const opened = openTable(folder, LIMITS, false);
  const jobs = describe(opened.table, ids);
  opened.close();
  return jobs;
}

function describe(table: JobTable, ids: readonly string[]): string {
  return JSON.stringify(ids.map((id) => [table.get(id), table.readResult(id)?.bytes?.length ?? null]));
}

/** The log with some sectors as they were, some as they are, and some of other bytes, cut anywhere behind the old end. */
function torn(before: Buffer, after: Buffer, fates: readonly number[], cut: number): Buffer {
  const log = Buffer.from(after.subarray(0, Math.max(before.length, Math.floor(after.length * cut))));
  let changed = 0;
  for (let at = 0; at < log.length; at += SECTOR_BYTES) {
    const sector = log.subarray(at, at + SECTOR_BYTES);
    const old = before.subarray(at, at + SECTOR_BYTES);
    if (sector.equals(old)) continue;
    const fate = fates[changed % fates.length];
    changed += 1;
    const kept = at < before.length && before.length < at + SECTOR_BYTES ? before.length - at : 0;
    if (fate === 1) sector.fill(0xa5, kept);
    if (fate === 2) sector.fill(0).set(old);
  }
  return log;
}

function randomChange(table: JobTable, kind: number, ids: string[]): void {
  const body = { bytes: Buffer.alloc(100 * (1 + kind)), file: null };
  if (kind % 3 === 0 || ids.length === 0) {
    const id = `job ${ids.length}`;
    ids.push(id);
    table.accept({ ...newStoredJob({ id, createdAt: Date.now() }), body });
  } else if (kind % 3 === 1) table.begin(TARGET, `mark ${ids.length}`);
  else {
    const running = table.list({ state: 'running', limit: 1, from: null }).records[0];
    const marks = ids.map((_, i) => `mark ${i + 1}`);
    const answer = { head: HEAD, bytes: body.bytes.length, body: null, runMs: 1, queueMs: 1 };
    if (running !== undefined) for (const mark of marks) table.settle(running.id, mark, answer, body);
  }
}

test('local: after a power loss every answered change is there, and the next one whole or not at all', () => {
  const fate = fc.integer({ min: 0, max: 2 });
  const losses = fc.array(
    fc.tuple(fc.array(fate, { minLength: 1 }), fc.double({ min: 0, max: 1, noNaN: true })),
    {
      minLength: 3,
      maxLength: 3,
    },
  );
  let scrambled = 0;
  fc.assert(
    fc.property(fc.array(fc.nat(8), { minLength: 5, maxLength: 12, size: 'max' }), losses, (kinds, torns) => {
      const folder = scratch();
      const loop = openTable(folder, LIMITS);
      const { database, table } = loop;
      database.exec('PRAGMA wal_autocheckpoint = 0'); // the log alone changes
      assert.deepEqual({ ...database.prepare('PRAGMA synchronous').get() }, { synchronous: 2 }, 'FULL');
      const ids: string[] = [];
      for (const kind of kinds) {
        const before = { disk: diskOf(folder), jobs: describe(table, ids) };
        const known = [...ids];
        table.transaction(() => randomChange(table, kind, ids));
        const after = { disk: diskOf(folder), jobs: describe(table, known) };
        assert.ok(before.disk.database.equals(after.disk.database));
        assert.equal(jobsOn(after.disk, known), after.jobs);
        for (const [fates, cut] of torns) {
          const log = torn(before.disk.log, after.disk.log, fates, cut);
          scrambled += log.equals(after.disk.log) ? 0 : 1;
          const jobs = jobsOn({ ...before.disk, log }, known);
          assert.ok(
            jobs === before.jobs || jobs === after.jobs,
            `${jobs}\nis neither\n${before.jobs}\nnor\n${after.jobs}`,
          );
        }
      }
      loop.close();
    }),
    { numRuns: 25 },
  );
  assert.ok(scrambled > 20, `${scrambled} logs were not whole`);
});
