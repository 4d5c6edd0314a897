/** Archives that are unpacked once, shared, released and removed: files on disk at each step. */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ArchiveCache } from '../../../../../supervisor/store/archives/archive-cache.js';
import { UnpackingCancelled } from '../../../../../supervisor/store/archives/archive-entry.js';
import { OwnFolder } from '../../../../../supervisor/store/archives/own-folder.js';
import { zipOf } from '../../../../helpers/archives.js';
import { eventually } from '../../../../helpers/server.js';
import { appFolder } from '../../../../worker/app-folder.js';

function ownFolder(): OwnFolder {
  return new OwnFolder((problem) => assert.fail(problem));
}

interface Place {
  readonly cache: ArchiveCache;
  readonly own: OwnFolder;
  readonly folder: string;
}

/** A cache, and a folder with `a.mar` and, with other content, `b.mar`. */
async function start(t: TestContext): Promise<Place> {
  const own = ownFolder();
  const closing = new AbortController();
  const cache = new ArchiveCache(own, closing.signal);
  t.after(() => {
    closing.abort(new UnpackingCancelled('the server ends'));
    own.close();
  });
  const folder = appFolder(t, {});
  for (const name of ['a', 'b'])
    writeFileSync(join(folder, `${name}.mar`), await zipOf([{ name: 'text', content: name }]));
  return { cache, own, folder };
}

/** Waits, because removal is asynchronous. */
async function untilGone(path: string): Promise<void> {
  await eventually(
    () => !existsSync(path),
    60_000,
    () => `${path} is gone`,
  );
}

test('archives with the same content share a folder until the last borrower releases it', async (t) => {
  const { cache, folder } = await start(t);
  copyFileSync(join(folder, 'a.mar'), join(folder, 'copy.tar.gz'));
  const [first, second] = await Promise.all(
    ['a.mar', 'copy.tar.gz'].map((name) => cache.lend(join(folder, name))),
  );
  assert.ok(first !== undefined && second !== undefined);
  assert.equal(first.folder, second.folder);
  first.release();
  first.release();
  assert.equal(readFileSync(join(second.folder, 'text'), 'utf8'), 'a');
  second.release();
  await untilGone(first.folder);
  const again = await cache.lend(join(folder, 'a.mar'));
  assert.equal(readFileSync(join(again.folder, 'text'), 'utf8'), 'a');
  assert.notEqual(again.folder, first.folder);
});

test('an archive with other content under the same name gets another folder', async (t) => {
  const { cache, folder } = await start(t);
  const first = await cache.lend(join(folder, 'a.mar'));
  renameSync(join(folder, 'b.mar'), join(folder, 'a.mar'));
  const second = await cache.lend(join(folder, 'a.mar'));
  assert.equal(readFileSync(join(first.folder, 'text'), 'utf8'), 'a');
  assert.equal(readFileSync(join(second.folder, 'text'), 'utf8'), 'b');
});

test('an archive that cannot be unpacked leaves nothing behind, and can be replaced', async (t) => {
  const { cache, own, folder } = await start(t);
  const whole = readFileSync(join(folder, 'a.mar'));
  writeFileSync(join(folder, 'a.mar'), whole.subarray(0, -1));
  const [one, two] = await Promise.allSettled([1, 2].map(() => cache.lend(join(folder, 'a.mar'))));
  for (const result of [one, two])
    assert.match(String(result?.status === 'rejected' && result.reason), /it is cut off or damaged/);
  assert.deepEqual(readdirSync(own.open()), []);
  writeFileSync(join(folder, 'a.mar'), whole);
  const { folder: mended } = await cache.lend(join(folder, 'a.mar'));
  assert.equal(readFileSync(join(mended, 'text'), 'utf8'), 'a');
});

/** Lends an archive of 200 files, and returns while they are being unpacked. */
async function lendSlowly(
  { cache, own, folder }: Place,
  signals: readonly AbortSignal[],
): Promise<Promise<PromiseSettledResult<Awaited<ReturnType<ArchiveCache['lend']>>>>[]> {
  const entries = Array.from({ length: 200 }, (_, i) => ({ name: `file ${i}`, content: `${i}` }));
  const path = join(folder, 'a.mar');
  writeFileSync(path, await zipOf(entries));
  const lent = signals.map(async (signal) => (await Promise.allSettled([cache.lend(path, signal)]))[0]);
  let isOver = false;
  void Promise.race(lent).then(() => (isOver = true));
  const isUnpacking = (): boolean => {
    const [name] = readdirSync(own.open());
    return name !== undefined && readdirSync(join(own.open(), name)).length > 0;
  };
  // The first of its files exists: this process still has to write hundreds.
  while (!isOver && !isUnpacking()) await new Promise((resolve) => setImmediate(resolve));
  return lent;
}

function reasonOf(result: PromiseSettledResult<unknown> | undefined): string {
  return result?.status === 'rejected' ? (result.reason as Error).message : 'none';
}

for (const [how, replace] of [
  ['overwritten', (path: string) => writeFileSync(path, 'something else')],
  ['replaced by another file', (path: string) => renameSync(join(dirname(path), 'b.mar'), path)],
] as const)
  test(`an archive that is ${how} while it is read is refused with that reason`, async (t) => {
    const place = await start(t);
    const [lent] = await lendSlowly(place, [new AbortController().signal]);
    replace(join(place.folder, 'a.mar'));
    assert.equal(reasonOf(await lent), 'it was changed while it was read; ask again once it is complete.');
    assert.deepEqual(readdirSync(place.own.open()), []);
  });

test('unpacking ends when its only borrower leaves, and nothing of it stays', async (t) => {
  const place = await start(t);
  const left = new AbortController();
  const [lent] = await lendSlowly(place, [left.signal]);
  left.abort();
  assert.equal(reasonOf(await lent), 'its request has ended');
  const [name = 'gone'] = readdirSync(place.own.open());
  await untilGone(join(place.own.open(), name));
  const again = await place.cache.lend(join(place.folder, 'a.mar'));
  assert.equal(readdirSync(again.folder).length, 200);
});

test('unpacking goes on for another borrower when one leaves', async (t) => {
  const place = await start(t);
  const left = new AbortController();
  const [first, second] = await lendSlowly(place, [left.signal, new AbortController().signal]);
  left.abort();
  assert.equal(reasonOf(await first), 'its request has ended');
  const result = await second;
  assert.ok(result?.status === 'fulfilled');
  assert.equal(readdirSync(result.value.folder).length, 200);
  result.value.release();
  await untilGone(result.value.folder);
});

test('a borrower that has left before gets nothing', async (t) => {
  const { cache, own, folder } = await start(t);
  await assert.rejects(cache.lend(join(folder, 'a.mar'), AbortSignal.abort()), {
    message: 'its request has ended',
  });
  assert.deepEqual(readdirSync(own.open()), []);
});

test('a folder is refused, and so is a pipe, without waiting', async (t) => {
  const { cache, folder } = await start(t);
  await assert.rejects(cache.lend(folder), { message: 'it is not a file.' });
  await assert.rejects(cache.lend(join(folder, 'gone.mar')), { code: 'ENOENT' });
});

test("a server's folder is private, has a random name, and is removed at the end", async (t) => {
  const { cache, own, folder } = await start(t);
  const other = ownFolder();
  t.after(() => other.close());
  const path = own.open();
  assert.equal(statSync(path).mode & 0o777, 0o700);
  assert.equal(statSync(path).uid, process.getuid?.());
  assert.match(basename(path), /-[\da-f]{32}$/);
  assert.notEqual(other.open(), path);
  const { folder: unpacked, release } = await cache.lend(join(folder, 'a.mar'));
  assert.equal(dirname(unpacked), path);
  own.close();
  own.close();
  assert.ok(!existsSync(path));
  assert.ok(existsSync(other.open()));
  release();
  await assert.rejects(cache.lend(join(folder, 'b.mar')), { message: 'the server ends' });
});
