/** The local store: the promises of every store, and its own. */
import assert from 'node:assert/strict';
import {
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  openSync,
  closeSync,
  writeSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import type { KeepLimits } from '../../../../supervisor/jobs/job-store.js';
import { JobTable } from '../../../../supervisor/jobs/local/job-table.js';
import { MAX_CHECKED_BYTES } from '../../../../supervisor/jobs/local/job-database.js';
import { collectNow } from '../../../../supervisor/memory/gc.js';
import {
  conformance,
  durableConformance,
  LIMITS,
  pass,
  StoreBench,
  type DurableStore,
} from '../conformance.js';
import { followsModel, type TestedStore } from '../store-property.js';
import { HEAD, newStoredJob } from '../stored-jobs.js';
import { copyOf, openHere, openTable, scratch } from './tables.js';

const LIMITS_OF_LARGE = { ...LIMITS, maxBytes: 1e8 };

conformance('local', async (limits) => {
  const store = await openHere(scratch(), limits);
  return { store, close: () => store.close() };
});

async function durable(folder: string, limits: KeepLimits): Promise<DurableStore> {
  const store = await openHere(folder, limits);
  return {
    store,
    reopen: async () => {
      const copy = copyOf(folder);
      await store.close();
      return durable(copy, limits);
    },
    close: () => store.close(),
  };
}

durableConformance('local', (limits) => durable(scratch(), limits));

async function open(folder: string, limits: KeepLimits): Promise<TestedStore> {
  const store = await openHere(folder, limits);
  return {
    store,
    crash: async () => {
      const copy = copyOf(folder);
      await store.close();
      return open(copy, limits);
    },
    close: () => store.close(),
  };
}

followsModel('local', (limits) => open(scratch(), limits), 40);

/** Opens the folder as after a kill of its server, in a process that then begins. */
async function reopened(folder: string, limits = LIMITS): Promise<{ bench: StoreBench; folder: string }> {
  const copy = copyOf(folder);
  return { bench: new StoreBench(await openHere(copy, limits)), folder: copy };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('local: after a kill, attempts have ended as if their workers had died, and the rest is as it was', async () => {
  const folder = scratch();
  const bench = new StoreBench(await openHere(folder, LIMITS));
  const key = { scope: 's', content: 'c' };
  const ended = await bench.accept({ priority: 9, key });
  await bench.begin();
  await bench.answer(ended, 'mark', '"out"');
  const lost = await bench.accept({ priority: 8 });
  const again = await bench.accept({ priority: 8, maxAttempts: 2 });
  const stopped = await bench.accept({ priority: 8, maxAttempts: 2 });
  const all = { routes: new Map([['/', 3]]) };
  await bench.begin('mark', all);
  await bench.store.cancel(stopped);
  bench.store.progress(lost, 'mark', { fraction: 0.5, text: 'half' });
  const waits = await bench.accept({ body: '{"waits":1}', headers: 'X-A\n1' });
  const later = await bench.accept({ delayMs: 60_000 });
  const { bench: next } = await reopened(folder);
  assert.deepEqual([next.endedUnrun, next.due], [[], []], 'nothing is told before the server is made');
  await turn();
  assert.deepEqual(
    next.endedUnrun.map(({ id, state }) => [id, state]),
    [
      [lost, 'lost'],
      [stopped, 'cancelled'],
    ],
  );
  assert.deepEqual([next.due, next.waiting()], [['m'], 1]);
  assert.deepEqual(
    await Promise.all([ended, lost, again, stopped, waits, later].map((id) => next.state(id))),
    ['succeeded', 'lost', 'queued', 'cancelled', 'queued', 'queued'],
  );
  const record = await next.record(lost);
  assert.deepEqual(
    [record.end?.error?.code, record.progress],
    ['SERVE_WORKER_LOST', { fraction: 0.5, text: 'half' }],
    'progress is written with the commit after it',
  );
  assert.equal((await next.store.readResult(ended))?.toString(), '"out"');
  assert.equal(await next.answer(lost), null, 'an outcome of the dead server');
  assert.equal(await next.accept({ id: 'another', key }), ended, 'its key is taken');
  const [begun] = await next.store.begin({ model: 'm', version: '1', isDefault: true, ...all }, 'new');
  assert.deepEqual(
    [begun?.record.id, begun?.call.headers, begun?.pieces.join('')],
    [waits, 'X-A\n1', '{"waits":1}'],
  );
  for (const one of [bench, next]) await one.store.close();
});

test('local: time goes on while no server runs: jobs expire, are due, and are dropped', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
  const folder = scratch();
  const bench = new StoreBench(await openHere(folder, LIMITS));
  const ended = await bench.accept({ priority: 9 });
  await bench.begin();
  await bench.answer(ended);
  const expires = await bench.accept({ ttlMs: 5000 });
  const later = await bench.accept({ delayMs: 30_000, ttlMs: 60_000 });
  await bench.store.close();
  mock.timers.setTime(1_000_000 + LIMITS.retentionMs);
  const { bench: next } = await reopened(folder);
  await pass(1);
  assert.deepEqual(
    [await next.store.get(ended), await next.state(expires), new Set(next.due), next.waiting()],
    [null, 'expired', new Set(['m']), 1],
  );
  assert.deepEqual([await next.begin(), next.endedUnrun.length], [[later], 1]);
  await next.store.close();
  mock.timers.reset();
});

test('local: the bound of bytes counts what an earlier server has stored, files too', async () => {
  const folder = scratch();
  const limits = { ...LIMITS, maxBytes: 5_000_000 };
  const bench = new StoreBench(await openHere(folder, limits));
  const large = 'x'.repeat(2_000_000);
  const ended = await bench.accept({ body: large });
  assert.equal(readdirSync(join(folder, 'bodies')).length, 1);
  await bench.begin();
  await bench.answer(ended, 'mark', large);
  await bench.accept({ body: large });
  const { bench: next, folder: copy } = await reopened(folder, limits);
  assert.equal((await next.store.readResult(ended))?.toString(), large);
  await next.accept({ id: 'fits after a drop', body: large });
  await next.store.close(); // waits for the files that go
  assert.equal(readdirSync(join(copy, 'bodies')).length, 2, 'the ended job is dropped with its file');
  const last = new StoreBench(await openHere(copyOf(copy), limits));
  const job = newStoredJob({ id: 'too many', createdAt: Date.now(), body: large });
  assert.deepEqual([await last.store.get(ended), await last.store.accept(job)], [null, { is: 'full' }]);
  for (const one of [bench, last]) await one.store.close();
});

test('local: a body without its row is removed at the start; a job without its body fails', async () => {
  const folder = scratch();
  const bench = new StoreBench(await openHere(folder, LIMITS_OF_LARGE));
  const large = 'x'.repeat(2_000_000);
  const gone = await bench.accept({ body: large });
  const [file] = readdirSync(join(folder, 'bodies'));
  const whole = await bench.accept({ body: large });
  writeFileSync(join(folder, 'bodies', 'orphan'), large);
  rmSync(join(folder, 'bodies', file as string));
  const { bench: next, folder: copy } = await reopened(folder, LIMITS_OF_LARGE);
  assert.equal(readdirSync(join(copy, 'bodies')).length, 1);
  assert.deepEqual(await next.begin('mark', { routes: new Map([['/', 2]]) }), [whole]);
  const { state, end } = await next.record(gone);
  assert.deepEqual([state, end?.error?.code], ['failed', 'SERVE_INTERNAL']);
  for (const one of [bench, next]) await one.store.close();
});

test('local: no call looks through the table, however many jobs it has', () => {
  const loop = openTable(scratch(), LIMITS);
  const { database, table } = loop;
  const queries = new Set<string>();
  const noted = new Proxy(database, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        if (name === 'prepare') queries.add(args[0] as string);
        return Reflect.apply(member, target, args);
      };
    },
  });
  const used = new JobTable(noted, LIMITS);
  queries.clear(); // the start counts all jobs
  const { record, call, key } = newStoredJob({ key: { scope: 's', content: 'c' } });
  const body = { bytes: Buffer.from('{}'), file: null };
  const target = { model: 'm', version: '1', isDefault: true, routes: new Map([['/', 2]]) };
  used.transaction(() => {
    for (let i = 0; i < 3; i += 1) used.accept({ record: { ...record, id: `job ${i}` }, call, key, body });
    for (const { record: begun } of used.begin(target, 'mark'))
      used.settle(begun.id, 'mark', { head: HEAD, bytes: 2, body: null, runMs: 0, queueMs: 0 }, body);
    used.takeBack('mark');
    used.list({ state: 'queued', limit: 10, from: null });
    used.list({ state: null, limit: 10, from: null });
    used.readResult('job 0');
    used.cancel('job 1');
    used.tick();
  });
  assert.ok(queries.size > 10, `${queries.size} queries`);
  for (const query of queries) {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${query}`).all() as { detail: string }[];
    for (const { detail } of plan)
      assert.doesNotMatch(
        detail,
        /TEMP B-TREE|SCAN (?!jobs USING (?:COVERING )?INDEX by_(?:end|time))/,
        query,
      );
  }
  assert.equal(table.rows.files().size, 0);
  loop.close();
});

test('local: everything is for its owner only', async () => {
  const folder = join(scratch(), 'new', 'jobs');
  const bench = new StoreBench(await openHere(folder, LIMITS_OF_LARGE));
  await bench.accept({ body: 'x'.repeat(2_000_000) });
  const modes = ['', ...readdirSync(folder, { recursive: true })].map((name) => {
    const stats = statSync(join(folder, String(name)));
    return [stats.isDirectory(), (stats.mode & 0o777).toString(8)];
  });
  for (const [isFolder, mode] of modes) assert.equal(mode, isFolder === true ? '700' : '600');
  await bench.store.close();
});

/** Puts a folder in the place of a body or result: then the system fails to read it (EISDIR), for root too. */
function makeUnreadable(folder: string): void {
  const [file] = readdirSync(join(folder, 'bodies'));
  const path = join(folder, 'bodies', file as string);
  rmSync(path);
  mkdirSync(path);
}

test('local: a job whose body cannot be read fails with the reason, and the others of its begin run', async () => {
  const folder = scratch();
  const bench = new StoreBench(await openHere(folder, LIMITS_OF_LARGE));
  const large = await bench.accept({ body: 'x'.repeat(2_000_000), maxAttempts: 3 });
  makeUnreadable(folder);
  const small = await bench.accept();
  assert.deepEqual(await bench.begin('mark', { routes: new Map([['/', 2]]) }), [small]);
  const { state, end, attempts, begunAt } = await bench.record(large);
  assert.deepEqual([state, end?.error?.code, attempts, begunAt], ['failed', 'SERVE_INTERNAL', 0, null]);
  assert.match(end?.error?.message ?? '', /^The body of this job cannot be read .*: EISDIR/);
  assert.deepEqual(
    bench.endedUnrun.map(({ id }) => id),
    [large],
    'for the log and its webhook',
  );
  await bench.store.close();
});

test('local: a worker whose job has no body gets the next one', async () => {
  const folder = scratch();
  const bench = new StoreBench(await openHere(folder, LIMITS_OF_LARGE));
  await bench.accept({ body: 'x'.repeat(2_000_000) });
  makeUnreadable(folder);
  const small = await bench.accept();
  assert.deepEqual(await bench.begin('mark'), [small]);
  assert.deepEqual(await bench.begin('another'), []);
  await bench.store.close();
});

test('local: while no body at all can be read, the store fails, and jobs are given back', async () => {
  const folder = scratch();
  const bench = new StoreBench(await openHere(folder, LIMITS_OF_LARGE));
  const large = await bench.accept({ body: 'x'.repeat(2_000_000) });
  renameSync(join(folder, 'bodies'), join(folder, 'elsewhere'));
  const small = await bench.accept();
  const routes = new Map([['/', 2]]);
  await assert.rejects(bench.begin('first', { routes }), /local \(.*\) cannot be used: ENOENT/);
  renameSync(join(folder, 'elsewhere'), join(folder, 'bodies'));
  assert.deepEqual(await bench.begin('second', { routes }), [large, small]);
  assert.equal((await bench.record(large)).attempts, 1);
  await bench.store.close();
});

test('local: a result that cannot be read is none, with a warning, and its webhook is taken without it', async () => {
  const folder = scratch();
  const bench = new StoreBench(await openHere(folder, LIMITS_OF_LARGE));
  const id = await bench.accept({ webhook: 'https://example.com' });
  await bench.begin();
  await bench.answer(id, 'mark', 'x'.repeat(2_000_000));
  makeUnreadable(folder);
  const warnings: string[] = [];
  bench.store.listener = { ...bench.store.listener, onWarning: (text) => warnings.push(text) };
  assert.equal(await bench.store.readResult(id), null);
  assert.match(warnings[0] ?? '', /^the result of the job .* cannot be read .*: EISDIR/);
  const { bench: next } = await reopened(folder, LIMITS_OF_LARGE);
  next.store.listener = bench.store.listener;
  const [taken] = await next.store.takeWebhooks(10);
  assert.deepEqual([taken?.of, taken?.of === 'job' && taken.body], ['job', null]);
  for (const one of [bench, next]) await one.store.close();
});

test('local: a large file is not read as a whole at the start, which damage of its jobs still stops', async () => {
  const folder = scratch();
  const bench = new StoreBench(await openHere(folder, LIMITS_OF_LARGE));
  const ids: string[] = [];
  for (let i = 0; i < 300; i += 1) ids.push(await bench.accept({ body: 'x'.repeat(1000) }));
  await bench.store.close();
  const [whole, damaged] = [copyOf(folder), copyOf(folder)];
  // The rest is no part of the database.
  for (const copy of [whole, damaged]) truncateSync(join(copy, 'jobs.sqlite3'), MAX_CHECKED_BYTES + 4096);
  const again = new StoreBench(await openHere(whole, LIMITS_OF_LARGE));
  assert.equal(await again.state(ids[0] as string), 'queued');
  await again.store.close();
  const bytes = Buffer.alloc(200 * 4096, 0xff);
  const handle = openSync(join(damaged, 'jobs.sqlite3'), 'r+');
  writeSync(handle, bytes, 0, bytes.length, 4096); // the tables, not the schema
  closeSync(handle);
  await assert.rejects(openHere(damaged, LIMITS_OF_LARGE), /jobs\.sqlite3 is damaged/);
});

test('local: this process keeps nothing of a job that has ended', async () => {
  const bench = new StoreBench(await openHere(scratch(), { ...LIMITS, maxBytes: 1e9 }));
  const usedBytes = async (): Promise<number> => {
    await turn();
    collectNow();
    return process.memoryUsage().heapUsed;
  };
  const run = async (): Promise<void> => {
    for (let i = 0; i < 500; i += 1) {
      const id = await bench.accept({ headers: Buffer.alloc(2000, 'x').toString() });
      await bench.begin();
      await bench.answer(id);
    }
    for (const notes of [bench.changed, bench.due]) notes.length = 0;
  };
  await run();
  const before = await usedBytes();
  for (let i = 0; i < 2; i += 1) await run();
  const keptBytes = (await usedBytes()) - before;
  assert.ok(keptBytes < 1000 * 1000, `${keptBytes} bytes of 1000 jobs, each of 2000 and its record`);
  await bench.store.close();
});
