import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { isEnding } from '../../../supervisor/processes/is-ending.js';

test('a process is ending from its kill on, and not before', { timeout: 60_000 }, async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000); console.log("runs")']);
  const pid = child.pid as number;
  await once(child.stdout, 'data');
  assert.equal(isEnding(pid), false);
  child.kill('SIGKILL');
  const exited = once(child, 'exit');
  while (!isEnding(pid)); // this process takes note of the end only once it is idle
  await exited;
  assert.equal(isEnding(pid), true, 'it is gone');
});

test('this process is not ending', () => {
  assert.equal(isEnding(process.pid), false);
});
