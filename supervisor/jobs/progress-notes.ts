/** Notes the progress of running jobs in the store, each at most once a second: the newest one counts. The outcome has the last. */
import type { JobProgress } from './job-record.js';

const INTERVAL_MS = 1000;

interface Note {
  readonly token: string;
  /** The newest one that is not stored; null if the newest is. */
  newest: JobProgress | null;
  timer: NodeJS.Timeout | null;
}

export class ProgressNotes {
  readonly #store: (id: string, token: string, progress: JobProgress) => void;
  readonly #byId = new Map<string, Note>();

  constructor(store: (id: string, token: string, progress: JobProgress) => void) {
    this.#store = store;
  }

  note(id: string, token: string, progress: JobProgress): void {
    const known = this.#byId.get(id);
    if (known?.token === token) {
      known.newest = progress;
      if (known.timer === null) this.#write(id, known);
      return;
    }
    this.end(id);
    const note: Note = { token, newest: progress, timer: null };
    this.#byId.set(id, note);
    this.#write(id, note);
  }

  /** The attempt at the job is over. */
  end(id: string): void {
    const note = this.#byId.get(id);
    if (note !== undefined && note.timer !== null) clearTimeout(note.timer);
    this.#byId.delete(id);
  }

  close(): void {
    for (const id of [...this.#byId.keys()]) this.end(id);
  }

  #write(id: string, note: Note): void {
    if (note.newest === null) return;
    this.#store(id, note.token, note.newest);
    note.newest = null;
    note.timer = setTimeout(() => {
      note.timer = null;
      this.#write(id, note);
    }, INTERVAL_MS);
    note.timer.unref();
  }
}
