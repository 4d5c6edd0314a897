import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { eventually } from '../../../helpers/server.js';
import { readGroup, readGroupMemory } from '../../../../supervisor/machine/processes.js';

const LINUX = { skip: process.platform !== 'linux' };
const MB = 2 ** 20;

/** Holds 40 MB itself, and a child of its group another 40. */
const PARENT = `
const { spawn } = require('node:child_process');
global.held = Buffer.alloc(40 * ${MB}, 1);
const child = spawn(process.execPath, ['-e', 'global.held = Buffer.alloc(40 * ${MB}, 1); console.log("ready"); process.stdin.resume()'], { stdio: ['inherit', 'pipe', 'inherit'] });
child.stdout.once('data', () => console.log('ready'));
process.stdin.resume();
`;

test(
  'the memory of a group is that of all its processes; one that has ended is left out',
  LINUX,
  async () => {
    const leader = spawn(process.execPath, ['-e', PARENT], {
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const pid = leader.pid as number;
    try {
      await once(leader.stdout, 'data');
      assert.equal(await readGroup(pid), pid);
      const groups = await readGroupMemory(new Set([pid]));
      assert.deepEqual([...groups.keys()], [pid]);
      const { pssBytes = 0, privateBytes = 0 } = groups.get(pid) ?? {};
      assert.ok(privateBytes > 80 * MB && pssBytes > privateBytes, `${pssBytes} ${privateBytes}`);
    } finally {
      process.kill(-pid, 'SIGKILL');
      await once(leader, 'exit');
    }
    await eventually(
      async () => (await readGroupMemory(new Set([pid]))).size === 0, // its child may end a moment later
      60_000,
      () => 'the group still has memory',
    );
    assert.equal(await readGroup(pid), null);
  },
);
