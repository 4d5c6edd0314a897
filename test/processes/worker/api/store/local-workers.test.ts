/** One file, several workers at the same moment: that it is made, found damaged, removed or locked. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Store } from '../../../../../index.js';
import { runProgram, type Program } from './programs.js';
import { scratchFolder } from './scratch-folder.js';

type Context = Parameters<typeof runProgram>[0] & Parameters<typeof scratchFolder>[0];

const WORKERS = 8;

/** Begins when stdin ends, as all the others do; sets a key of its own. */
const RACER = `
  const store = new Store(options);
  const said = new Promise((resolve) => process.stdin.resume().once('end', resolve));
  say('ready');
  await said;
  await store.get('anything');
  await store.set('of ' + process.pid, process.pid, null);
  await store.close();
`;

/** Runs workers that begin at once; every one of them must have set its key. Returns what they wrote to stderr. */
async function race(t: Context, path: string): Promise<string> {
  const options = { backend: 'local', config: { path } } as const;
  const racers = Array.from({ length: WORKERS }, () => runProgram(t, RACER, options));
  await saidByAll(racers, 'ready');
  for (const { process } of racers) process.stdin?.end();
  for (const { ended, stderr } of racers) assert.deepEqual(await ended, { code: 0, signal: null }, stderr());
  const store = new Store(options);
  for (const { process } of racers) assert.equal(await store.get(`of ${process.pid}`), process.pid);
  await store.close();
  return racers.map(({ stderr }) => stderr()).join('');
}

async function saidByAll(programs: readonly Program[], line: string): Promise<void> {
  for (const program of programs) assert.equal(await program.line(), line);
}

test('workers that make the file at the same moment all write to it', async (t) => {
  assert.equal(await race(t, join(scratchFolder(t), 'own', 'store.sqlite3')), '');
});

test('workers that find the file damaged at the same moment set it aside once, and all write to the new one', async (t) => {
  const path = join(scratchFolder(t), 'store.sqlite3');
  await fill(path);
  truncateSync(path, 20_000);
  const said = await race(t, path);
  assert.equal(said.match(/is damaged/g)?.length, 1, said);
  assert.equal(asides(path).length, 1);
});

test('damage that a call meets is set aside too, and the other stores go on with the new file', async (t) => {
  const path = join(scratchFolder(t), 'store.sqlite3');
  await fill(path);
  const options = { backend: 'local', config: { path } } as const;
  const [store, other] = [new Store(options), new Store(options)];
  t.after(() => Promise.all([store.close(), other.close()]));
  assert.equal(await store.has('key 1'), true);
  assert.equal(await other.has('key 2'), true);
  const { size } = statSync(path);
  truncateSync(path, 8192);
  truncateSync(path, size); // a hole in place of its pages
  const before = asides(path).length;
  assert.equal(await store.has('key 30'), false);
  assert.equal(asides(path).length, before + 1);
  await store.set('new', 'value');
  assert.equal(await other.get('new'), 'value');
});

test('a file that was removed while stores have it open is made anew, and they share the new one', async (t) => {
  const path = join(scratchFolder(t), 'store.sqlite3');
  const options = { backend: 'local', config: { path } } as const;
  const [store, other] = [new Store(options), new Store(options)];
  t.after(() => Promise.all([store.close(), other.close()]));
  await store.set('key', 'old', null);
  assert.equal(await other.get('key'), 'old');
  for (const remove of [() => rmSync(path), () => rmSync(dirname(path), { recursive: true })]) {
    remove();
    await store.set('new', 'value', null);
    assert.equal(await store.get('key'), null);
    assert.equal(await other.get('new'), 'value');
    await other.set('key', 'old', null);
    assert.equal(await store.get('key'), 'old');
  }
  assert.deepEqual(asides(path), []);
});

const HOLDER = `
  const { DatabaseSync } = await import(options.library);
  const db = new DatabaseSync(options.path);
  db.exec('BEGIN IMMEDIATE');
  db.exec("INSERT INTO entries VALUES ('held', x'31', 9e999)");
  say('holds');
  await new Promise((resolve) => process.stdin.resume().once('end', resolve));
  db.exec('COMMIT');
  say('let go');
`;

test('a write waits for the lock of another process while reads and the event loop go on', async (t) => {
  const path = join(scratchFolder(t), 'store.sqlite3');
  const store = new Store({ backend: 'local', config: { path } });
  t.after(() => store.close());
  await store.set('key', 'old', null);
  const library = import.meta.resolve('@photostructure/sqlite');
  const holder = runProgram(t, HOLDER, { library, path });
  assert.equal(await holder.line(), 'holds');
  let written = false;
  const write = Promise.all([store.set('key', 'new', null), store.delete('held')]).then(([, existed]) => {
    written = true;
    return existed;
  });
  for (let turn = 0; turn < 20; turn += 1) {
    assert.equal(await store.get('key'), 'old');
    await new Promise((resolve) => setTimeout(resolve, 1)); // a turn of the event loop, however long it takes
  }
  assert.equal(written, false);
  holder.process.stdin?.end();
  assert.equal(await holder.line(), 'let go');
  assert.equal(await write, true, 'the other had set it');
  assert.equal(await store.get('key'), 'new');
});

/** Each thread opens and closes the file over and over, and must find what it wrote. */
const THREADS = `
  const { Worker } = await import('node:worker_threads');
  const body = \`
    const { threadId, workerData } = await import('node:worker_threads');
    const { Store } = await import(workerData.index);
    for (let i = 0; i < 100; i += 1) {
      const store = new Store(workerData.store);
      const before = await store.get('of ' + threadId);
      if (before !== (i === 0 ? null : i - 1)) throw new Error(threadId + ' found ' + before + ' after ' + i);
      await Promise.all([store.set('of ' + threadId, i, null), store.set('of all', i, null)]);
      await store.close();
    }\`;
  const kept = new Store(options.store);
  await kept.set('of all', 0, null);
  const url = new URL('data:text/javascript,' + encodeURIComponent(body));
  const threads = [1, 2, 3].map(() => new Worker(url, { workerData: options }));
  await Promise.all(threads.map((thread) => new Promise((resolve, reject) => thread.once('exit', resolve).once('error', reject))));
  for (const id of [1, 2, 3]) if (await kept.get('of ' + id) !== 99) throw new Error('lost');
  await kept.close();
  say('done');
`;

test('stores of several threads of one process, opened and closed all the time, share the file', async (t) => {
  const path = join(scratchFolder(t), 'store.sqlite3');
  const index = new URL('../../../../../index.js', import.meta.url).href;
  const program = runProgram(t, THREADS, { index, store: { backend: 'local', config: { path } } });
  assert.equal(await program.line(), 'done', program.stderr());
  assert.deepEqual(await program.ended, { code: 0, signal: null });
  assert.equal(readFileSync(path).subarray(0, 15).toString(), 'SQLite format 3');
});

async function fill(path: string): Promise<void> {
  const store = new Store({ backend: 'local', config: { path } });
  for (let i = 0; i < 50; i += 1) await store.set(`key ${i}`, 'x'.repeat(2000), null);
  await store.close();
}

function asides(path: string): string[] {
  return readdirSync(dirname(path)).filter((name) => /\.damaged-\d+$/.test(name));
}
