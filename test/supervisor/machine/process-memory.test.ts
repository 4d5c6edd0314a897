import assert from 'node:assert/strict';
import { test } from 'node:test';
import { residentBytes } from '../../../supervisor/machine/process-memory.js';

test(
  'the memory of a process is what the kernel counts as resident',
  { skip: process.platform !== 'linux' },
  () => {
    const own = process.memoryUsage.rss();
    const seen = residentBytes(process.pid) ?? 0;
    assert.ok(Math.abs(seen - own) < own / 2, `${seen} beside ${own}`);
  },
);

test('a process that is gone has none', { skip: process.platform !== 'linux' }, () => {
  assert.equal(residentBytes(2 ** 22 + 1), null, 'no pid is that large');
});
