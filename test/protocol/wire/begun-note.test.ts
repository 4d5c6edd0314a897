import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  BEGUN_NOTE_BYTES,
  MONOTONIC_OFFSET_MS,
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

test('a note of zeros means that no call has begun', () => {
  assert.equal(decodeBegunNote(Buffer.alloc(BEGUN_NOTE_BYTES)).id, 0);
});

test('its clock is the one of all processes, process.hrtime()', () => {
  const before = Number(process.hrtime.bigint()) / 1e6;
  const nowMs = MONOTONIC_OFFSET_MS + performance.now();
  const after = Number(process.hrtime.bigint()) / 1e6;
  assert.ok(nowMs >= before - 1 && nowMs <= after + 1, `${before} ${nowMs} ${after}`);
});
