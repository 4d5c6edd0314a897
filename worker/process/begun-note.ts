/** Writes the note of a call that begins (protocol/wire/begun-note.ts). */
import { writeSync } from 'node:fs';
import { BEGUN_NOTE_BYTES, MONOTONIC_OFFSET_MS, encodeBegunNote } from '../../protocol/wire/begun-note.js';
import { BEGUN_FD, dieIfLost } from './descriptors.js';

const note = Buffer.alloc(BEGUN_NOTE_BYTES);

/** Once this returns, the front will know that the call may have run, even if this process dies. */
export function noteBegun(id: number): void {
  encodeBegunNote(note, id, MONOTONIC_OFFSET_MS + performance.now());
  try {
    writeSync(BEGUN_FD, note, 0, BEGUN_NOTE_BYTES, 0);
  } catch (thrown) {
    dieIfLost();
    throw thrown;
  }
}
