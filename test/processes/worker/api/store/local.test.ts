/** One file, several processes, some of which die. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Store } from '../../../../../index.js';
import { DatabaseSync } from '@photostructure/sqlite';
import { LocalBackend } from '../../../../../worker/api/store/local.js';
import { BOUND_BY_MODES } from '../../../../helpers/bound-by-modes.js';
import { needs } from '../../../../helpers/needs.js';
import { eventually } from '../../../../helpers/server.js';
import { boundByModes, runProgram, withFileLimit, withOwnDisk } from './programs.js';
import { scratchFolder } from './scratch-folder.js';

/** Writes whole values over a few keys, forever: a number, and text made of it. */
const WRITER = `
  const store = new Store(options);
  for (let i = 0; ; i += 1) {
    const text = String(i).repeat(1 + (i * 7919) % 4000);
    await Promise.all([store.set('key ' + i % 50, { i, text }, i % 3 ? 60 : null), store.set('brief ' + i % 9, { i, text }, 0.01)]);
    if (i >= 20 && i < 60) say('wrote ' + i);
  }
`;

for (const [what, keep] of [
  ['a few kB', 20_000],
  ['less than its first page', 3000],
  ['less than its two first pages', 5000],
  ['all but its last 40 kB', -40_000],
] as const) {
  test(`a file cut to ${what} is set aside with a line that names both, and the store starts empty`, async (t) => {
    const folder = scratchFolder(t);
    const path = join(folder, 'store.sqlite3');
    const options = { backend: 'local', config: { path } } as const;
    const store = new Store(options);
    for (let i = 0; i < 50; i += 1) await store.set(`key ${i}`, 'x'.repeat(10_000), null);
    await store.close();
    const { size } = statSync(path);
    truncateSync(path, keep > 0 ? keep : size + keep);
    const reader = runProgram(t, READER, options);
    assert.equal(await reader.line(), 'null then value');
    assert.deepEqual(await reader.ended, { code: 0, signal: null });
    const aside = readdirSync(folder).find((name) => /^store\.sqlite3\.damaged-\d+$/.test(name)) ?? '';
    assert.equal(statSync(join(folder, aside)).size, keep > 0 ? keep : size + keep, 'kept as it was');
    assert.ok(reader.stderr().includes(`The local store ${path} is damaged`), reader.stderr());
    assert.ok(reader.stderr().includes(`renamed to ${join(folder, aside)};`), reader.stderr());
  });
}

const READER = `
  const store = new Store(options);
  const before = await store.get('key 1');
  await store.set('key 1', 'value');
  say((before && 'something') + ' then ' + await store.get('key 1'));
  await store.close();
`;

test('a writer killed at any moment, over and over, leaves only whole values', async (t) => {
  const options = { backend: 'local', config: { path: join(scratchFolder(t), 'store.sqlite3') } } as const;
  const witness = runProgram(t, WRITER, options); // one that lives on while others die
  await witness.line();
  for (let round = 0; round < 15; round += 1) {
    const writer = runProgram(t, WRITER, options);
    for (let lines = 0; lines <= 2 * round; lines += 1) await writer.line(); // each round dies somewhere else
    writer.process.kill('SIGKILL');
    assert.equal((await writer.ended).signal, 'SIGKILL');
    const store = new Store(options);
    assert.ok((await wholeValues(store)) > 0);
    await store.set('survivor', round);
    assert.equal(await store.get('survivor'), round, 'the lock that the dead held is free');
    await store.close();
  }
  assert.equal(witness.process.exitCode, null, 'the writer that was not killed is at work');
  witness.process.kill('SIGKILL');
  await witness.ended;
  const store = new Store(options);
  assert.ok((await wholeValues(store)) >= 50);
  await store.close();
});

async function wholeValues(store: Store): Promise<number> {
  let found = 0;
  for (let i = 0; i < 50; i += 1) {
    const value = await store.get<{ i: number; text: string }>(`key ${i}`);
    if (value === null) continue;
    found += 1;
    assert.equal(value.i % 50, i);
    assert.equal(value.text, String(value.i).repeat(1 + ((value.i * 7919) % 4000)));
  }
  return found;
}

test('a value that one process sets another gets at once, while the file outgrows its first size', async (t) => {
  const options = { backend: 'local', config: { path: join(scratchFolder(t), 'store.sqlite3') } } as const;
  const store = new Store(options);
  t.after(() => store.close());
  assert.equal(await store.get('round'), null);
  const body = `
    const store = new Store(options);
    let round = 0;
    for await (const _ of process.stdin) {
      await store.set('big ' + round, 'x'.repeat(1_000_000), null);
      await store.set('round', round, null);
      say('set');
      round += 1;
    }
    await store.close();
  `;
  const other = runProgram(t, body, options);
  for (let round = 0; round < 20; round += 1) {
    other.process.stdin?.write('go');
    await other.line();
    assert.equal(await store.get('round'), round);
    assert.equal((await store.get<string>(`big ${round}`))?.length, 1_000_000);
    await store.set(`mine ${round}`, 'y'.repeat(300_000));
  }
  other.process.stdin?.end();
  assert.deepEqual(await other.ended, { code: 0, signal: null });
});

/** Number of entries in the file, including expired ones. A prepared statement would keep the file open for later tests. */
function entriesIn(folder: string): number {
  const file = new DatabaseSync(join(folder, 'store.sqlite3'));
  let held = NaN;
  file.function('seen', (count: unknown) => {
    held = Number(count);
    return null;
  });
  file.exec('SELECT seen(count(*)) FROM entries');
  file.close();
  return held;
}

test('expired values leave the file, which does not grow with them', async (t) => {
  const folder = scratchFolder(t);
  const backend = new LocalBackend(join(folder, 'store.sqlite3'));
  t.after(() => backend.close());
  await backend.set('lasting', Buffer.from('value'), null);
  const sizes: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const keys = Array.from({ length: 200 }, (_, i) => `round ${round}, key ${i}`);
    await Promise.all(keys.map((key) => backend.set(key, Buffer.alloc(10_000), 20)));
    const last = keys.at(-1) as string;
    await eventually(
      async () => (await backend.get(last)) === null,
      60_000,
      () => 'the round did not expire',
    );
    sizes.push(readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0));
  }
  assert.ok(entriesIn(folder) < 1000, 'most of 4000 values are still there');
  assert.ok((sizes.at(-1) as number) < 20_000_000, `40 MB went through files of ${String(sizes)} bytes`);
  assert.ok(await backend.get('lasting'));
});

test('a value set anew by one process is not swept for what another saw expire', async (t) => {
  const backend = new LocalBackend(join(scratchFolder(t), 'store.sqlite3'));
  t.after(() => backend.close());
  for (let round = 0; round < 50; round += 1) {
    await backend.set('key', Buffer.from('old'), 1);
    await eventually(
      async () => (await backend.get('key')) === null,
      60_000,
      () => 'the value did not expire',
    );
    // Each of these looks for expired values, and sees the old one until the first is written.
    await Promise.all([
      backend.set('other', Buffer.from('x'), null),
      backend.set('key', Buffer.from('new'), 60_000),
      backend.set('another', Buffer.from('x'), null),
    ]);
    await backend.set('other', Buffer.from('x'), null);
    assert.deepEqual(await backend.get('key'), Buffer.from('new'));
  }
});

const FILLER = `
  const store = new Store(options);
  const text = 'x'.repeat(500_000);
  await store.set('first', text, null);
  const failed = [];
  for (let i = 0; i < 9; i += 1) await store.set('more ' + i, text, null).catch((error) => failed.push(error.message));
  say(new Set(failed).size + ' ' + failed[0]);
  say(String(await store.get('first') === text));
  say(String(await store.delete('first')));
  await store.set('small', 1);
  say(String(await store.get('small')));
  await store.close();
`;

test('a file that may not grow is an error for the call, and what was there before can be read and deleted', async (t) => {
  const path = join(scratchFolder(t), 'store.sqlite3');
  const program = runProgram(t, FILLER, { backend: 'local', config: { path } }, withFileLimit(6000));
  const why = 'the system failed to read or write it (EFBIG)';
  assert.equal(await program.line(), `1 The local store ${path} cannot be used: ${why}.`);
  assert.deepEqual([await program.line(), await program.line(), await program.line()], ['true', 'true', '1']);
  assert.deepEqual(await program.ended, { code: 0, signal: null });
});

test(
  'a full disk is reported as such, and earlier values can be read and deleted',
  { skip: needs('unshare') },
  async (t) => {
    const folder = scratchFolder(t);
    const path = join(folder, 'store.sqlite3');
    const program = runProgram(t, FILLER, { backend: 'local', config: { path } }, withOwnDisk(folder, '4m'));
    assert.equal(await program.line(), `1 The local store ${path} cannot be used: the disk is full.`);
    assert.deepEqual(
      [await program.line(), await program.line(), await program.line()],
      ['true', 'true', '1'],
    );
    assert.deepEqual(await program.ended, { code: 0, signal: null });
  },
);

const USER = `
  const store = new Store(options);
  const said = (call) => call.catch((error) => error.message).then((result) => say(String(result)));
  await said(store.get('key'));
  await said(store.set('key', 'new'));
  await store.close();
`;

for (const [what, modes, read, written] of [
  ['that this user may not read', [0o200, 0o700], /not open it \(EACCES\)\.$/, /not open it \(EACCES\)\.$/],
  ['that this user may not write', [0o400, 0o700], /^old$/, /this process has no permission to write it\.$/],
  [
    'in a folder that this user may not write',
    [0o600, 0o500],
    /: EACCES: .* access /,
    /: EACCES: .* access /,
  ],
] as const) {
  test(`a file ${what} is reported as such`, { skip: needs(...BOUND_BY_MODES) }, async (t) => {
    const folder = scratchFolder(t);
    const path = join(folder, 'store.sqlite3');
    const options = { backend: 'local', config: { path } } as const;
    const store = new Store(options);
    await store.set('key', 'old', null);
    await store.close();
    chmodSync(path, modes[0]);
    chmodSync(folder, modes[1]);
    const user = runProgram(t, USER, options, boundByModes());
    assert.match(await user.line(), read);
    assert.match(await user.line(), written);
    assert.deepEqual(await user.ended, { code: 0, signal: null });
  });
}

test('the files, and the folder that is made for them, are for their owner only', async (t) => {
  const folder = join(scratchFolder(t), 'folder', 'that', 'is', 'made');
  const store = new Store({ backend: 'local', config: { path: join(folder, 'store.sqlite3') } });
  await store.set('key', 1);
  const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]);
  assert.deepEqual(
    modes.sort(),
    ['', '-guard', '-shm', '-wal'].map((end) => [`store.sqlite3${end}`, 0o600]),
  );
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  await store.close();
});

const UNUSABLE: Record<string, (path: string) => void> = {
  'a long file of something else': (path) => writeFileSync(path, 'hello '.repeat(2000)),
  'a short one': (path) => writeFileSync(path, 'hello'),
  'one of a single byte': (path) => writeFileSync(path, 'x'),
  'a file of LMDB': (path) => {
    const pages = Buffer.alloc(8192);
    pages.writeUInt32LE(0xbeefc0de, 24);
    writeFileSync(path, pages);
  },
  'a folder': (path) => mkdirSync(path),
  'a file in place of its folder': (path) => {
    rmSync(dirname(path), { recursive: true });
    writeFileSync(dirname(path), '');
  },
};

for (const [name, make] of Object.entries(UNUSABLE)) {
  test(`${name} is an error for the call, and works once it is out of the way`, async (t) => {
    const path = join(scratchFolder(t), 'folder', 'store.sqlite3');
    mkdirSync(dirname(path));
    make(path);
    const store = new Store({ backend: 'local', config: { path } });
    t.after(() => store.close());
    await assert.rejects(store.get('key'), (error: Error) => {
      assert.ok(error.message.startsWith(`The local store ${path} cannot be used: `), error.message);
      return true;
    });
    rmSync(dirname(path), { recursive: true });
    assert.equal(await store.get('key'), null);
  });
}

/** Other tests of this process may have files open. Where the system does not tell, every descriptor counts. */
function isOf(path: string, fd: string): boolean {
  try {
    return process.platform !== 'linux' || readlinkSync(`/proc/self/fd/${fd}`).startsWith(path);
  } catch {
    return false; // it was the one that reads the folder
  }
}

test('stores opened and closed over and over leave no open file', async (t) => {
  const path = join(scratchFolder(t), 'store.sqlite3');
  const options = { backend: 'local', config: { path } } as const;
  const kept = new Store(options);
  t.after(() => kept.close());
  await kept.set('key', 'value');
  const openFiles = (): number => readdirSync('/dev/fd').filter((fd) => isOf(path, fd)).length;
  let before = 0;
  for (let round = 0; round < 30; round += 1) {
    const store = new Store(options);
    await store.set('round', round);
    await store.close();
    if (round === 0) before = openFiles(); // SQLite keeps one for the next that opens it
  }
  assert.equal(openFiles(), before);
  assert.equal(await kept.get('round'), 29);
});

test('a write that cannot be done fails alone among writes that begin together', async (t) => {
  const backend = new LocalBackend(join(scratchFolder(t), 'store.sqlite3'));
  t.after(() => backend.close());
  const none = null as unknown as Buffer; // the table takes no null
  const results = await Promise.allSettled([
    backend.set('before', Buffer.from('1'), null),
    backend.set('wrong', none, null),
    backend.set('after', Buffer.from('2'), 60_000),
    backend.delete('before'),
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  );
  assert.match(
    String((results[1] as PromiseRejectedResult).reason),
    /store\.sqlite3 cannot be used: NOT NULL/,
  );
  assert.deepEqual([await backend.get('before'), await backend.get('wrong')], [null, null]);
  assert.deepEqual(await backend.get('after'), Buffer.from('2'));
});

test('writes of one key that are begun one after the other take effect in their order', async (t) => {
  const backend = new LocalBackend(join(scratchFolder(t), 'store.sqlite3'));
  t.after(() => backend.close());
  const first = backend.set('key', Buffer.from('1'), null);
  const results = [
    first,
    first.then(() => backend.delete('key')),
    backend.set('key', Buffer.from('2'), null),
  ];
  assert.deepEqual(await Promise.all(results), [undefined, true, undefined]);
  assert.equal(await backend.get('key'), null);
});

test("the bytes of a value are its reader's own", async (t) => {
  const backend = new LocalBackend(join(scratchFolder(t), 'store.sqlite3'));
  t.after(() => backend.close());
  const given = Buffer.from('value');
  const written = backend.set('key', given, null);
  await written;
  given.fill('x');
  (await backend.get('key'))?.fill('y');
  assert.deepEqual(await backend.get('key'), Buffer.from('value'));
});
