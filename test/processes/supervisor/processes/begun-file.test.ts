import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { BegunFile } from '../../../../supervisor/processes/spawn-worker.js';

const WRITE_AND_DIE = `
const note = Buffer.alloc(16);
note.writeUInt32LE(7, 0);
note.writeDoubleLE(1.5, 8);
require('node:fs').writeSync(5, note, 0, 16, 0);
process.kill(process.pid, 'SIGKILL');
`;

test('a note outlives its writer, killed right after it wrote', (t) => {
  const file = new BegunFile();
  t.after(() => file.close());
  assert.equal(file.read().id, 0);
  const { signal } = spawnSync(process.execPath, ['-e', WRITE_AND_DIE], {
    stdio: ['ignore', 'ignore', 'inherit', 'ignore', 'ignore', file.fd],
  });
  assert.equal(signal, 'SIGKILL');
  assert.deepEqual(file.read(), { id: 7, atMs: 1.5 });
});

test('the text behind a note is read; of a long one only the end', (t) => {
  const file = new BegunFile();
  t.after(() => file.close());
  assert.equal(file.readLeft(), '');
  writeSync(file.fd, 'where it hung', 16);
  assert.equal(file.readLeft(), 'where it hung');
  writeSync(file.fd, `${'x'.repeat(70_000)}end`, 16);
  assert.equal(file.readLeft(), `${'x'.repeat(64 * 1024 - 3)}end`);
  assert.equal(file.read().id, 0);
});

test('the file has no name, so that no death leaves it behind', (t) => {
  const file = new BegunFile();
  t.after(() => file.close());
  const mine = `banana-serve-${process.pid}-`;
  for (const folder of ['/dev/shm', tmpdir()]) {
    const names = folder === tmpdir() || process.platform === 'linux' ? readdirSync(folder) : [];
    assert.deepEqual(
      names.filter((name) => name.startsWith(mine)),
      [],
    );
  }
});

test('a folder in which no file can be created is skipped; if all fail, the error names the last', (t) => {
  const file = new BegunFile(['/nowhere', tmpdir()]);
  t.after(() => file.close());
  assert.equal(file.read().id, 0);
  assert.throws(() => new BegunFile(['/nowhere', '/proc']), /\/proc\//);
});
