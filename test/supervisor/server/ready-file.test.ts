import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ReadyFile } from '../../../supervisor/server/ready-file.js';

const ADDRESSES = { url: 'http://127.0.0.1:5', managementUrl: null, metricsUrl: 'http://127.0.0.1:6' };

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-ready-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

function failingLog(): never {
  throw new Error('nothing is logged');
}

test('--ready-file has the addresses and the pid; the file of an earlier server is removed at the start', (t) => {
  const folder = newFolder(t);
  const path = join(folder, 'ready.json');
  writeFileSync(path, 'of an earlier server');
  const file = new ReadyFile(path);
  assert.ok(!readdirSync(folder).includes('ready.json'));
  file.write(ADDRESSES, { error: failingLog });
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), { ...ADDRESSES, pid: process.pid });
  file.remove();
  assert.deepEqual(readdirSync(folder), []);
});

test('--ready-file in a folder that does not exist ends the start, and names the option', (t) => {
  assert.throws(() => new ReadyFile(join(newFolder(t), 'absent/ready.json')), {
    code: 'SERVE_CONFIG',
    message: /^--ready-file cannot be written: ENOENT/,
  });
});

test('a folder that has gone by the time of readiness is logged, and ends no server', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'banana-ready-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = new ReadyFile(join(folder, 'ready.json'));
  rmSync(folder, { recursive: true });
  const logged: unknown[] = [];
  file.write(ADDRESSES, { error: (text: unknown) => void logged.push(text) });
  assert.match(String(logged), /^--ready-file cannot be written: ENOENT/);
});
