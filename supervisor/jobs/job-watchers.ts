/** Clients that watch a job: they hear of each change of its record. Watching costs no work while nothing changes. */
import { isDeepStrictEqual } from 'node:util';
import type { JobRecord } from './job-record.js';

/** Null: the server ends, and tells what it knows. */
type OnChange = (record: JobRecord | null) => void;

export class JobWatchers {
  readonly #byId = new Map<string, Set<OnChange>>();
  /** The records that those who watch were told last. */
  readonly #told = new Map<string, JobRecord>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Calls back at each change from now on, until the function returned is called. */
  add(id: string, onChange: OnChange): () => void {
    const watching = this.#byId.get(id) ?? new Set();
    this.#byId.set(id, watching.add(onChange));
    this.#count += 1;
    return () => {
      if (!watching.delete(onChange)) return;
      this.#count -= 1;
      if (watching.size > 0 || this.#byId.get(id) !== watching) return;
      this.#byId.delete(id);
      this.#told.delete(id);
    };
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** Each change is told once, though a process may hear of its own steps too. */
  tell(record: JobRecord): void {
    const watching = this.#byId.get(record.id);
    if (watching === undefined || isDeepStrictEqual(this.#told.get(record.id), record)) return;
    this.#told.set(record.id, record);
    for (const onChange of [...watching]) onChange(record);
  }

  /** Lets go of those who watch a job that `isMeant`. */
  release(isMeant: (id: string) => boolean): void {
    for (const [id, watching] of [...this.#byId]) {
      if (isMeant(id)) for (const onChange of [...watching]) onChange(null);
    }
  }
}
