/** The note of a worker that runs several calls at the same time, as the front reads it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MONOTONIC_OFFSET_MS, decodeBegunNote } from '../../../protocol/wire/begun-note.js';
import { BegunTimes } from '../../../worker/process/begun-note.js';

test('every call that runs keeps the time of its beginning; an entry is used again once its call has ended', (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  let written = Buffer.alloc(0);
  const note = new BegunTimes(3, (bytes) => (written = Buffer.from(bytes)));
  const begin = (id: number, atMs: number): void => {
    nowMs = atMs;
    note.begin(id);
  };
  const times = (ids: readonly number[]): (number | undefined)[] => {
    const { times } = decodeBegunNote(written);
    return ids.map((id) => {
      const atMs = times?.get(id);
      return atMs === undefined ? undefined : Math.round(atMs - MONOTONIC_OFFSET_MS);
    });
  };
  begin(1, 10);
  begin(2, 20);
  begin(3, 30);
  assert.deepEqual([decodeBegunNote(written).id, times([1, 2, 3])], [3, [10, 20, 30]]);
  for (let id = 4; id < 40; id += 1) {
    note.end(id - 1); // the first two run on
    begin(id, 10 * id);
    assert.deepEqual([decodeBegunNote(written).id, times([1, 2, id])], [id, [10, 20, 10 * id]]);
  }
});
