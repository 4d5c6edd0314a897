/** Writes the note of calls that begin (protocol/wire/begun-note.ts). */
import { writeSync } from 'node:fs';
import {
  BEGUN_NOTE_BYTES,
  MONOTONIC_OFFSET_MS,
  begunNoteBytes,
  encodeBegunNote,
} from '../../protocol/wire/begun-note.js';
import { BEGUN_FD, dieIfLost } from './descriptors.js';

const note = Buffer.alloc(BEGUN_NOTE_BYTES);

export interface BegunNote {
  /**
   * Once this returns, the front will know that the call, and those of its batch before it, may have run, even if this
   * process dies.
   */
  begin(id: number): void;
  /** The call has ended, with all of its batch. */
  end(id: number): void;
}

export const ONE_AT_A_TIME: BegunNote = {
  begin(id) {
    encodeBegunNote(note, id, MONOTONIC_OFFSET_MS + performance.now());
    writeNote(note);
  },
  end() {},
};

/** The note of a worker that runs several calls at the same time, with an entry for each of them. */
export class BegunTimes implements BegunNote {
  readonly #bytes: Buffer;
  /** Offsets of entries whose calls have ended. */
  readonly #free: number[] = [];
  readonly #offsets = new Map<number, number>();
  readonly #write: (bytes: Buffer) => void;

  constructor(concurrency: number, write: (bytes: Buffer) => void = writeNote) {
    this.#bytes = Buffer.alloc(begunNoteBytes(concurrency));
    this.#write = write;
    for (let entry = concurrency; entry > 0; entry -= 1) this.#free.push(entry * BEGUN_NOTE_BYTES);
  }

  /** The entry and the note are written at once: they lie in one page. */
  begin(id: number): void {
    const offset = this.#free.pop() as number;
    const atMs = MONOTONIC_OFFSET_MS + performance.now();
    this.#offsets.set(id, offset);
    encodeBegunNote(this.#bytes, id, atMs);
    encodeBegunNote(this.#bytes, id, atMs, offset);
    this.#write(this.#bytes);
  }

  /** Another call may have its entry. */
  end(id: number): void {
    this.#free.push(this.#offsets.get(id) as number);
    this.#offsets.delete(id);
  }
}

function writeNote(bytes: Buffer): void {
  try {
    writeSync(BEGUN_FD, bytes, 0, bytes.length, 0);
  } catch (thrown) {
    dieIfLost();
    throw thrown;
  }
}
