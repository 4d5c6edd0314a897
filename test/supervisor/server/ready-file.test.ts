import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { prepareReadyFile } from '../../../supervisor/server/listeners.js';

const ADDRESSES = { url: 'http://127.0.0.1:5', managementUrl: null, metricsUrl: 'http://127.0.0.1:6' };

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-ready-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Prepares the file; `end` is the end of the server. */
function prepare(path: string, logged: unknown[] = []) {
  const ends: (() => void)[] = [];
  const closing = { onClose: (close: () => void) => void ends.push(close) };
  const write = prepareReadyFile(path, closing, { error: (text: unknown) => void logged.push(text) });
  return { write, end: () => ends.forEach((end) => end()) };
}

test('--ready-file has the addresses and the pid; the file of an earlier server is removed at the start', (t) => {
  const folder = newFolder(t);
  const path = join(folder, 'ready.json');
  writeFileSync(path, 'of an earlier server');
  const logged: unknown[] = [];
  const file = prepare(path, logged);
  assert.ok(!readdirSync(folder).includes('ready.json'));
  file.write(ADDRESSES);
  assert.deepEqual(logged, []);
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), { ...ADDRESSES, pid: process.pid });
  file.end();
  assert.deepEqual(readdirSync(folder), []);
});

test('--ready-file in a folder that does not exist ends the start, and names the option', (t) => {
  assert.throws(() => prepare(join(newFolder(t), 'absent/ready.json')), {
    code: 'SERVE_CONFIG',
    message: /^--ready-file cannot be written: ENOENT/,
  });
});

test('a folder that has gone by the time of readiness is logged, and ends no server', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'banana-ready-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const logged: unknown[] = [];
  const file = prepare(join(folder, 'ready.json'), logged);
  rmSync(folder, { recursive: true });
  file.write(ADDRESSES);
  assert.match(String(logged), /^--ready-file cannot be written: ENOENT/);
});
