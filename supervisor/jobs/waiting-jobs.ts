/** Due jobs that wait in memory: a line for each place, each in order of acceptance. */
import { JobLine, type Ordered } from './job-line.js';
import type { JobTarget, WaitingPlace } from './job-record.js';

export interface WaitingJob extends Ordered {
  readonly place: WaitingPlace;
}

interface Line<J extends Ordered> {
  readonly place: WaitingPlace;
  readonly jobs: JobLine<J>;
}

export class WaitingJobs<J extends WaitingJob> {
  /** Lines by the names of their models; a line without jobs is removed. */
  readonly #byModel = new Map<string, Line<J>[]>();

  add(job: J): void {
    this.#lineOf(job.place).jobs.add(job);
  }

  /** Returns whether it was here. */
  remove(job: J): boolean {
    const line = this.#find(job.place);
    if (line === undefined || !line.jobs.remove(job)) return false;
    this.#dropIfEmpty(line);
    return true;
  }

  hasAny(model: string): boolean {
    return this.#byModel.has(model);
  }

  count(target: JobTarget): number {
    return this.#linesFor(target).reduce((sum, { jobs }) => sum + jobs.length, 0);
  }

  places(): WaitingPlace[] {
    return [...this.#byModel.values()].flat().map(({ place }) => place);
  }

  /** Removes the first job for this target, and those of its route that may begin with it. */
  take(target: JobTarget): J[] {
    const taken: J[] = [];
    const lines = this.#linesFor(target);
    const route = first(lines)?.place.route ?? '';
    const sameRoute = lines.filter(({ place }) => place.route === route);
    for (const size = target.routes.get(route) ?? 0; taken.length < size;) {
      const line = first(sameRoute);
      if (line === undefined) break;
      taken.push(line.jobs.shift() as J);
      this.#dropIfEmpty(line);
    }
    return taken;
  }

  #linesFor({ model, version, isDefault, routes }: JobTarget): Line<J>[] {
    const lines = this.#byModel.get(model) ?? [];
    return lines.filter(({ place }) => {
      const isMeant = place.version === null ? isDefault : place.version === version;
      return isMeant && routes.has(place.route);
    });
  }

  #lineOf(place: WaitingPlace): Line<J> {
    const known = this.#find(place);
    if (known !== undefined) return known;
    const line: Line<J> = { place, jobs: new JobLine() };
    const lines = this.#byModel.get(place.model);
    if (lines === undefined) this.#byModel.set(place.model, [line]);
    else lines.push(line);
    return line;
  }

  #find({ model, version, route, priority }: WaitingPlace): Line<J> | undefined {
    const lines = this.#byModel.get(model);
    return lines?.find(
      ({ place }) => place.version === version && place.route === route && place.priority === priority,
    );
  }

  #dropIfEmpty(line: Line<J>): void {
    if (line.jobs.length > 0) return;
    const { model } = line.place;
    const others = (this.#byModel.get(model) ?? []).filter((other) => other !== line);
    if (others.length === 0) this.#byModel.delete(model);
    else this.#byModel.set(model, others);
  }
}

/** The line with the most urgent job; of these, the one that was accepted first. */
function first<J extends WaitingJob>(lines: readonly Line<J>[]): Line<J> | undefined {
  let best: Line<J> | undefined;
  for (const line of lines) {
    if (line.jobs.length > 0 && (best === undefined || isBefore(line, best))) best = line;
  }
  return best;
}

function isBefore<J extends WaitingJob>(a: Line<J>, b: Line<J>): boolean {
  if (a.place.priority !== b.place.priority) return a.place.priority > b.place.priority;
  return (a.jobs.peek() as J).order < (b.jobs.peek() as J).order;
}
