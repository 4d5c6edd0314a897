import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { spawnWorker } from '../../../../supervisor/processes/spawn-worker.js';

test('what a process has sent before its reader comes is not lost', { timeout: 60_000 }, async (t) => {
  const script = `
    const { writeSync } = require('node:fs');
    writeSync(3, 'hello');
    writeSync(1, 'sent');
    setInterval(() => {}, 1000);
  `;
  const worker = spawnWorker({
    command: [process.execPath, '-e', script],
    env: {},
    withheld: null,
  });
  t.after(() => worker.kill('SIGKILL'));
  await once(worker.stdout, 'data');
  await new Promise((resolve) => setImmediate(resolve)); // a poll of the event loop, which reads what it may
  const read = once(worker.framesIn, 'data');
  worker.framesIn.resume();
  assert.equal(String((await read)[0]), 'hello');
});
