import assert from 'node:assert/strict';
import { test } from 'node:test';
import { residentBytes } from '../../../supervisor/machine/processes.js';

test('residentBytes is the resident memory of a process', { skip: process.platform !== 'linux' }, () => {
  const own = process.memoryUsage.rss();
  const seen = residentBytes(process.pid) ?? 0;
  assert.ok(Math.abs(seen - own) < own / 2, `${seen} beside ${own}`);
});

test('residentBytes is null for a process that has ended', { skip: process.platform !== 'linux' }, () => {
  assert.equal(residentBytes(2 ** 22 + 1), null, 'no pid is that large');
});
