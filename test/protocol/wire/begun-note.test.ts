import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_CONCURRENCY } from '../../../protocol/wire/limits.js';
import {
  BEGUN_NOTE_BYTES,
  MONOTONIC_OFFSET_MS,
  begunNoteBytes,
  decodeBegunNote,
  encodeBegunNote,
} from '../../../protocol/wire/begun-note.js';

test('a note reads back as it was written', () => {
  const note = Buffer.alloc(BEGUN_NOTE_BYTES);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 0xffff_ffff }), fc.double({ min: 0, noNaN: true }), (id, atMs) => {
      encodeBegunNote(note, id, atMs);
      assert.deepEqual(decodeBegunNote(note), { id, atMs });
    }),
  );
});

test('entries behind a note have the times of the calls that run; all of them fit into a page', () => {
  const bytes = Buffer.alloc(begunNoteBytes(3));
  encodeBegunNote(bytes, 9, 30);
  encodeBegunNote(bytes, 7, 10, 2 * BEGUN_NOTE_BYTES);
  encodeBegunNote(bytes, 9, 30, 3 * BEGUN_NOTE_BYTES);
  const { id, atMs, times } = decodeBegunNote(bytes);
  assert.deepEqual([id, atMs, times?.get(7), times?.get(9), times?.get(8)], [9, 30, 10, 30, undefined]);
  assert.equal(begunNoteBytes(1), BEGUN_NOTE_BYTES);
  assert.ok(begunNoteBytes(MAX_CONCURRENCY) <= 4096);
});

test('a note of zeros means that no call has begun', () => {
  assert.equal(decodeBegunNote(Buffer.alloc(BEGUN_NOTE_BYTES)).id, 0);
});

test('its clock is the one of all processes, process.hrtime()', () => {
  const before = Number(process.hrtime.bigint()) / 1e6;
  const nowMs = MONOTONIC_OFFSET_MS + performance.now();
  const after = Number(process.hrtime.bigint()) / 1e6;
  assert.ok(nowMs >= before - 1 && nowMs <= after + 1, `${before} ${nowMs} ${after}`);
});
