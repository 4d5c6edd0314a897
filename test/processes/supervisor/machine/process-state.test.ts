import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { isEnding, isFrozen } from '../../../../supervisor/machine/processes.js';
import { eventually } from '../../../helpers/server.js';

/** Other systems do not report it. */
const LINUX = { timeout: 240_000, skip: process.platform !== 'linux' };

test('a process is ending from its kill on, and not before', LINUX, async () => {
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

test('a process is frozen from SIGSTOP to SIGCONT', LINUX, async (t) => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000); console.log("runs")']);
  t.after(() => child.kill('SIGKILL'));
  const pid = child.pid as number;
  await once(child.stdout, 'data');
  assert.equal(isFrozen(pid), false);
  child.kill('SIGSTOP');
  await eventually(
    () => isFrozen(pid),
    60_000,
    () => 'it runs',
  );
  child.kill('SIGCONT');
  await eventually(
    () => !isFrozen(pid),
    60_000,
    () => 'it is frozen',
  );
});

/** The kernel's stat line of a process of this name; another PF_ flag is always set. */
const statOf = (name: string, state: string, flags: number): string =>
  `7 (${name}) ${state} 1 7 7 0 -1 ${0x400000 | flags} 120 0\n`;

for (const [what, stat, expected] of [
  ['runs', statOf('node', 'R', 0), false],
  ['sleeps, and has a name like the end of a zombie', statOf('a) Z 1 (b', 'S', 0), false],
  ['gives back its memory, which may take seconds', statOf('node', 'R', 0x4), true],
  ['is a zombie', statOf('node', 'Z', 0), true],
] as const) {
  test(`a process that ${what} is ${expected ? '' : 'not '}ending`, LINUX, (t) => {
    t.mock.method(fs, 'readFileSync', () => stat);
    syncBuiltinESMExports();
    const isSo = isEnding(7);
    t.mock.restoreAll();
    syncBuiltinESMExports();
    assert.equal(isSo, expected);
  });
}

test('this process is not ending', () => {
  assert.equal(isEnding(process.pid), false);
});
