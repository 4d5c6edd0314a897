/** Due jobs that wait for a worker: a line for each place. */
import { Heap } from './heap.js';
import type { JobTarget, WaitingPlace } from './job-record.js';

export interface WaitingJob {
  /** In order of acceptance. */
  readonly seq: number;
  readonly place: WaitingPlace;
  lineIndex: number;
}

interface Line {
  readonly place: WaitingPlace;
  /** Number of jobs; a line without jobs is removed. */
  readonly length: number;
}

/** The lines of all places. */
export class WaitingLines<L extends Line> {
  readonly #byModel = new Map<string, L[]>();
  readonly #newLine: (place: WaitingPlace) => L;

  constructor(newLine: (place: WaitingPlace) => L) {
    this.#newLine = newLine;
  }

  clear(): void {
    this.#byModel.clear();
  }

  hasAny(model: string): boolean {
    return this.#byModel.has(model);
  }

  models(): string[] {
    return [...this.#byModel.keys()];
  }

  count(target: JobTarget): number {
    return this.linesFor(target).reduce((sum, { length }) => sum + length, 0);
  }

  places(): WaitingPlace[] {
    return [...this.#byModel.values()].flat().map(({ place }) => place);
  }

  linesFor({ model, version, isDefault, routes }: JobTarget): L[] {
    const lines = this.#byModel.get(model) ?? [];
    return lines.filter(({ place }) => {
      const isMeant = place.version === null ? isDefault : place.version === version;
      return isMeant && routes.has(place.route);
    });
  }

  /** Changes the line of a place. */
  change<T>({ model, version, route, priority }: WaitingPlace, step: (line: L) => T): T {
    const lines = this.#byModel.get(model) ?? [];
    let line = lines.find(
      ({ place }) => place.version === version && place.route === route && place.priority === priority,
    );
    if (line === undefined) lines.push((line = this.#newLine({ model, version, route, priority })));
    const done = step(line);
    if (line.length === 0) lines.splice(lines.indexOf(line), 1);
    if (lines.length === 0) this.#byModel.delete(model);
    else this.#byModel.set(model, lines);
    return done;
  }
}

/** Waiting jobs of one place, in order of acceptance. */
class JobLine<J extends WaitingJob> extends Heap<'lineIndex', J> {
  readonly place: WaitingPlace;

  constructor(place: WaitingPlace) {
    super('lineIndex', ({ seq }) => seq);
    this.place = place;
  }
}

export class WaitingJobs<J extends WaitingJob> extends WaitingLines<JobLine<J>> {
  constructor() {
    super((place) => new JobLine(place));
  }

  add(job: J): void {
    this.change(job.place, (line) => line.add(job));
  }

  remove(job: J): void {
    if (job.lineIndex >= 0) this.change(job.place, (line) => line.remove(job));
  }

  /** Removes the first job for this target, and those of its route that may begin with it. */
  take(target: JobTarget): J[] {
    const taken: J[] = [];
    const lines = this.linesFor(target);
    let job = first(lines);
    const route = job?.place.route ?? '';
    const sameRoute = lines.filter(({ place }) => place.route === route);
    for (const size = target.routes.get(route) ?? 0; job !== undefined && taken.length < size;) {
      this.remove(job);
      taken.push(job);
      job = first(sameRoute);
    }
    return taken;
  }
}

/** The most urgent job of these lines; of these, the one that was accepted first. */
function first<J extends WaitingJob>(lines: readonly JobLine<J>[]): J | undefined {
  let best: J | undefined;
  for (const { first: job } of lines) {
    if (job !== undefined && (best === undefined || isBefore(job, best))) best = job;
  }
  return best;
}

function isBefore({ seq, place }: WaitingJob, other: WaitingJob): boolean {
  return place.priority === other.place.priority ? seq < other.seq : place.priority > other.place.priority;
}
