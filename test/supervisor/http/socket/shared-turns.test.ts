/** Turns of the event loop end by time, by a mocked clock. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { SharedTurns } from '../../../../supervisor/http/socket/shared-turns.js';

/** Notes in which turn each piece of work is done, which takes so long. */
function workedIn(t: TestContext): {
  turns: SharedTurns;
  notes: string[];
  work(name: string, ms: number): Promise<void>;
} {
  let nowMs = 0;
  let turn = 0;
  const turns = new SharedTurns(1);
  t.mock.method(performance, 'now', () => nowMs);
  const count = (): void => void setImmediate(() => ((turn += 1), turn < 20 && count()));
  count();
  const notes: string[] = [];
  return {
    turns,
    notes,
    work: async (name, ms) => {
      await turns.own();
      await Promise.resolve(); // as an answer that is written some promises later
      await Promise.resolve();
      notes.push(`${turn} ${name}`);
      nowMs += ms;
    },
  };
}

test('a turn ends by time, not by number: what is left goes on in later turns, in order', async (t) => {
  const { notes, work } = workedIn(t);
  const cheap = Array.from({ length: 6 }, (_, i) => work(`cheap ${i}`, 0.3));
  const costly = Array.from({ length: 3 }, (_, i) => work(`costly ${i}`, 7));
  await Promise.all([...cheap, ...costly]);
  assert.deepEqual(notes, [
    ...['0 cheap 0', '0 cheap 1', '0 cheap 2', '0 cheap 3'],
    ...['1 cheap 4', '1 cheap 5', '1 costly 0'],
    '2 costly 1',
    '3 costly 2',
  ]);
});

test('whoever asks first in a turn has time, and all share it', async (t) => {
  const { turns, work } = workedIn(t);
  assert.deepEqual([turns.hasTime(), turns.hasTime()], [true, true]);
  await work('costly', 7);
  assert.equal(turns.hasTime(), false);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(turns.hasTime(), true);
});

test('a turn that is ended has no time, the next one has', async (t) => {
  const { turns } = workedIn(t);
  turns.end(); // nothing was done in it yet
  assert.equal(turns.hasTime(), true);
  turns.end();
  assert.equal(turns.hasTime(), false);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(turns.hasTime(), true);
});
