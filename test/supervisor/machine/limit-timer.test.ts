import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { startLimit } from '../../../supervisor/machine/limit-timer.js';

/** Blocks this process. */
function standStill(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

test('a limit that ends while the process runs acts at once', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => 0); // this process is never late
  let acted = false;
  startLimit(5000, () => (acted = true));
  t.mock.timers.tick(4999);
  assert.equal(acted, false);
  t.mock.timers.tick(1);
  assert.equal(acted, true);
});

test('a limit that ended while the process was blocked acts after pending input was read', async () => {
  const child = new PassThrough();
  const order: string[] = [];
  child.on('data', () => order.push('read'));
  const limit = new Promise<void>((resolve) =>
    startLimit(5, () => {
      order.push('limit');
      resolve();
    }),
  );
  standStill(100);
  setImmediate(() => child.write('a message in time'));
  await limit;
  assert.deepEqual(order, ['read', 'limit']);
});

test('a late limit is stopped by input that is read in the same turn of the event loop', async () => {
  let acted = false;
  const limit = startLimit(5, () => (acted = true));
  const later = new Promise<void>((resolve) => startLimit(5, resolve));
  standStill(100);
  setImmediate(() => limit.stop());
  await later; // Limits of the same length act in the order in which they were started.
  assert.equal(acted, false);
});
