import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untilFree } from '../../../../worker/api/store/sqlite-errors.js';

const busy = (): Error => Object.assign(new Error('database is locked'), { errcode: 5 });

test('a step that meets a lock is tried again while the event loop goes on', async () => {
  let tries = 0;
  let turns = 0;
  const ticking = setInterval(() => (turns += 1), 1);
  const step = (): string => {
    tries += 1;
    if (turns < 5) throw busy();
    return 'done';
  };
  assert.equal(await untilFree(step), 'done');
  clearInterval(ticking);
  assert.ok(tries > 1);
});

test('a lock that stays is an error in the end, and any other error at once', async (t) => {
  let tries = 0;
  let nowMs = 0;
  const clock = t.mock.method(performance, 'now', () => nowMs);
  const locked = (): never => {
    tries += 1;
    nowMs += 10;
    throw busy();
  };
  await assert.rejects(untilFree(locked, 30), /database is locked/);
  clock.mock.restore();
  assert.equal(tries, 3);
  tries = 0;
  const full = (): never => {
    tries += 1;
    throw Object.assign(new Error('full'), { errcode: 13 });
  };
  await assert.rejects(untilFree(full), /full/);
  assert.equal(tries, 1);
});
