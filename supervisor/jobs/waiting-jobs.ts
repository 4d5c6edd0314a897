/** Due jobs that wait in memory: one line per version and route of a model, each in order of acceptance. */
import type { JobTarget } from './job-record.js';

export interface WaitingJob {
  readonly order: number;
  readonly place: { readonly model: string; readonly version: string; readonly route: string };
}

interface Line<J> {
  readonly version: string;
  readonly route: string;
  /** In order. */
  readonly jobs: J[];
}

export class WaitingJobs<J extends WaitingJob> {
  /** Lines by the names of their models; a line without jobs is removed. */
  readonly #byModel = new Map<string, Line<J>[]>();

  add(job: J): void {
    const { jobs } = this.#lineOf(job.place);
    jobs.splice(positionOf(jobs, job.order), 0, job);
  }

  /** Returns whether it was here. */
  remove(job: J): boolean {
    const { model, version, route } = job.place;
    const line = this.#find(model, version, route);
    if (line === undefined) return false;
    const at = positionOf(line.jobs, job.order);
    if (line.jobs[at] !== job) return false;
    line.jobs.splice(at, 1);
    this.#dropIfEmpty(model, line);
    return true;
  }

  count(target: JobTarget): number {
    if (this.#byModel.size === 0) return 0;
    return this.#linesFor(target).reduce((sum, { jobs }) => sum + jobs.length, 0);
  }

  /** Removes the first job for this target, and those of its line that may begin with it. */
  take(target: JobTarget): J[] {
    const [first] = this.#linesFor(target).sort((a, b) => headOf(a) - headOf(b));
    if (first === undefined) return [];
    const taken = first.jobs.splice(0, target.routes.get(first.route));
    this.#dropIfEmpty(target.model, first);
    return taken;
  }

  /** All jobs for this target. */
  all(target: JobTarget): J[] {
    return this.#linesFor(target).flatMap(({ jobs }) => jobs);
  }

  #linesFor({ model, version, routes }: JobTarget): Line<J>[] {
    const lines = this.#byModel.get(model) ?? [];
    return lines.filter((line) => line.version === version && routes.has(line.route));
  }

  #lineOf({ model, version, route }: J['place']): Line<J> {
    const known = this.#find(model, version, route);
    if (known !== undefined) return known;
    const line: Line<J> = { version, route, jobs: [] };
    const lines = this.#byModel.get(model);
    if (lines === undefined) this.#byModel.set(model, [line]);
    else lines.push(line);
    return line;
  }

  #find(model: string, version: string, route: string): Line<J> | undefined {
    return this.#byModel.get(model)?.find((line) => line.version === version && line.route === route);
  }

  #dropIfEmpty(model: string, line: Line<J>): void {
    if (line.jobs.length > 0) return;
    const others = (this.#byModel.get(model) ?? []).filter((other) => other !== line);
    if (others.length === 0) this.#byModel.delete(model);
    else this.#byModel.set(model, others);
  }
}

function headOf<J extends WaitingJob>({ jobs }: Line<J>): number {
  return jobs[0]?.order ?? Infinity;
}

/** Index of the first job whose order is not below this one. */
function positionOf(jobs: readonly WaitingJob[], order: number): number {
  const last = jobs.at(-1);
  if (last === undefined || last.order < order) return jobs.length; // a new job, nearly always
  let [low, high] = [0, jobs.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((jobs[middle] as WaitingJob).order < order) low = middle + 1;
    else high = middle;
  }
  return low;
}
