/** Collects what a transaction changes for others than the table, who are told once it is committed. */
import type { EndedRecord, JobRecord, StoredCall, WaitingPlace } from '../job-record.js';
import type { Effects } from './table-calls.js';

export class TableEffects {
  #effects = noEffects();

  /** Returns all since this was called last. */
  take(): Effects {
    const effects = this.#effects;
    this.#effects = noEffects();
    return effects;
  }

  changed(record: JobRecord): void {
    this.#effects.events.push({ is: 'changed', record });
  }

  cancelled(id: string): void {
    this.#effects.events.push({ is: 'cancelled', id });
  }

  endedUnrun(record: EndedRecord, call: StoredCall): void {
    this.#effects.events.push({ is: 'ended unrun', record, call });
  }

  /** A job waits at another place now; null: at none. */
  moved({ model, priority }: JobRecord, from: string | null, to: string | null): void {
    if (from === to) return;
    const { counts, events } = this.#effects;
    if (from !== null) counts.push({ place: placeIn(from, priority), by: -1 });
    if (to === null) return;
    counts.push({ place: placeIn(to, priority), by: 1 });
    events.push({ is: 'due', model });
  }

  /** No job needs this file any more. */
  gone(file: string | null): void {
    if (file !== null) this.#effects.gone.push(file);
  }
}

/** A place without its priority, as one text. */
export function keyOf({ model, version, route }: Omit<WaitingPlace, 'priority'>): string {
  return JSON.stringify([model, version, route]);
}

export function placeIn(key: string, priority: number): WaitingPlace {
  const [model, version, route] = JSON.parse(key) as [string, string | null, string];
  return { model, version, route, priority };
}

function noEffects(): Effects {
  return { counts: [], events: [], gone: [] };
}
