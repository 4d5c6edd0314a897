/** Workers come and go: a file that is opened and closed all the time must lose nothing that others write meanwhile. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { runProgram } from './programs.js';
import { scratchFolder } from './scratch-folder.js';

const WRITERS = 3;
const OPENERS = 3;
const OPENS = 800;

/** Writes to keys of its own until stdin ends. What a key holds must be what this program wrote there last. */
const WRITER = `
  const { once } = await import('node:events');
  const store = new Store(options);
  const held = new Map();
  const faults = [];
  let ends = false;
  once(process.stdin.resume(), 'end').then(() => { ends = true; });
  const check = async (key) => {
    const found = await store.get(key);
    if (found !== held.get(key)) faults.push(key + ' holds ' + found + ' instead of ' + held.get(key));
  };
  let i = 0;
  for (; !ends; i += 1) {
    const key = 'of ' + process.pid + ': ' + i % 100;
    if (held.has(key)) await check(key);
    await store.set(key, i, null).then(() => held.set(key, i), (error) => faults.push(error.message));
    if (i === 0) say('writes');
  }
  for (const key of held.keys()) await check(key);
  await store.close();
  say(JSON.stringify({ writes: i, faults: faults.slice(0, 5), count: faults.length }));
`;

const OPENER = `
  for (let i = 0; i < options.opens; i += 1) {
    const store = new Store({ backend: 'local', config: options.config });
    await store.get('nothing');
    await store.close();
  }
`;

test('no write that was acknowledged is lost, and none fails, while others open and close the file', async (t) => {
  const config = { path: join(scratchFolder(t), 'store.sqlite3') };
  const writers = Array.from({ length: WRITERS }, () => runProgram(t, WRITER, { backend: 'local', config }));
  for (const writer of writers) assert.equal(await writer.line(), 'writes');
  const openers = Array.from({ length: OPENERS }, () => runProgram(t, OPENER, { config, opens: OPENS }));
  for (const opener of openers) {
    assert.deepEqual(await opener.ended, { code: 0, signal: null }, opener.stderr());
  }
  for (const writer of writers) writer.process.stdin?.end();
  for (const writer of writers) {
    const { faults, writes } = JSON.parse(await writer.line()) as { faults: string[]; writes: number };
    assert.deepEqual(faults, []);
    assert.ok(writes > 1);
  }
});
