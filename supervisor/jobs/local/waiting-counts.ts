/** Numbers of due jobs by place, for questions that must cost nothing. */
import type { JobTarget, WaitingPlace } from '../job-record.js';
import type { CountChange } from './table-calls.js';

interface Count {
  readonly place: WaitingPlace;
  jobs: number;
}

export class WaitingCounts {
  /** Counts by model, then by place; those of no jobs are removed. */
  #byModel = new Map<string, Map<string, Count>>();

  clear(): void {
    this.#byModel.clear();
  }

  change({ place, by }: CountChange): void {
    const { model, version, route, priority } = place;
    const places = this.#byModel.get(model) ?? new Map<string, Count>();
    const key = JSON.stringify([version, route, priority]);
    const count = places.get(key) ?? { place, jobs: 0 };
    count.jobs += by;
    if (count.jobs > 0) places.set(key, count);
    else places.delete(key);
    if (places.size > 0) this.#byModel.set(model, places);
    else this.#byModel.delete(model);
  }

  models(): string[] {
    return [...this.#byModel.keys()];
  }

  hasAny(model: string): boolean {
    return this.#byModel.has(model);
  }

  count({ model, version, isDefault, routes }: JobTarget): number {
    let sum = 0;
    for (const { place, jobs } of this.#byModel.get(model)?.values() ?? []) {
      const isMeant = place.version === null ? isDefault : place.version === version;
      if (isMeant && routes.has(place.route)) sum += jobs;
    }
    return sum;
  }

  places(): WaitingPlace[] {
    return [...this.#byModel.values()].flatMap((places) => Array.from(places.values(), ({ place }) => place));
  }
}
