/** Clients that watch a job: they hear of each change of its record. Watching costs no work while nothing changes. */
import { isDeepStrictEqual } from 'node:util';
import { deferred } from '../machine/deferred.js';
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

/**
 * Resolves with the record at a change for which `isEnough` returns true, and with null when the server ends, after `limitMs`,
 * or when `stop` is called.
 */
export function watchUntil(
  watchers: JobWatchers,
  id: string,
  isEnough: (record: JobRecord) => boolean,
): { until(limitMs: number): Promise<JobRecord | null>; readonly stop: () => void } {
  const { promise, resolve } = deferred<JobRecord | null>();
  let timer: NodeJS.Timeout | undefined;
  const end = (told: JobRecord | null): void => {
    clearTimeout(timer);
    leave();
    resolve(told);
  };
  const leave = watchers.add(id, (record) => {
    if (record === null || isEnough(record)) end(record);
  });
  return {
    stop: () => end(null),
    until: (limitMs) => {
      timer = setTimeout(() => end(null), limitMs);
      void promise.then(() => clearTimeout(timer)); // it may have been over before
      return promise;
    },
  };
}
