/** Due jobs that wait for a worker: a queue for each place. */
import { Heap } from './heap.js';
import { isMeant, type JobTarget, type WaitingPlace } from './job-record.js';

export interface WaitingJob {
  /** In order of acceptance. */
  readonly seq: number;
  readonly place: WaitingPlace;
  queueIndex: number;
}

export interface WaitingQueue {
  readonly place: WaitingPlace;
  /** Number of jobs; a queue without jobs is removed. */
  readonly length: number;
}

/** The queues of all places. */
export class WaitingQueues<Q extends WaitingQueue> {
  readonly #byModel = new Map<string, Q[]>();
  readonly #newQueue: (place: WaitingPlace) => Q;

  constructor(newQueue: (place: WaitingPlace) => Q) {
    this.#newQueue = newQueue;
  }

  clear(): void {
    this.#byModel.clear();
  }

  hasAny(model: string): boolean {
    return this.#byModel.has(model);
  }

  count(target: JobTarget): number {
    let sum = 0; // asked several times a job
    for (const { place, length } of this.#byModel.get(target.model) ?? [])
      if (isMeant(place, target) && target.routes.has(place.route)) sum += length;
    return sum;
  }

  places(): WaitingPlace[] {
    return [...this.#byModel.values()].flat().map(({ place }) => place);
  }

  queuesFor(target: JobTarget): Q[] {
    const queues = this.#byModel.get(target.model) ?? [];
    return queues.filter(({ place }) => isMeant(place, target) && target.routes.has(place.route));
  }

  /** Changes the queue of a place. */
  change({ model, version, route, priority }: WaitingPlace, step: (queue: Q) => void): void {
    const queues = this.#byModel.get(model) ?? [];
    let queue = queues.find(
      ({ place }) => place.version === version && place.route === route && place.priority === priority,
    );
    if (queue === undefined) queues.push((queue = this.#newQueue({ model, version, route, priority })));
    step(queue);
    if (queue.length === 0) queues.splice(queues.indexOf(queue), 1);
    if (queues.length === 0) this.#byModel.delete(model);
    else this.#byModel.set(model, queues);
  }
}

/** Waiting jobs of one place, in order of acceptance. */
class JobQueue<J extends WaitingJob> extends Heap<'queueIndex', J> {
  readonly place: WaitingPlace;

  constructor(place: WaitingPlace) {
    super('queueIndex', ({ seq }) => seq);
    this.place = place;
  }
}

export class WaitingJobs<J extends WaitingJob> extends WaitingQueues<JobQueue<J>> {
  constructor() {
    super((place) => new JobQueue(place));
  }

  add(job: J): void {
    this.change(job.place, (queue) => queue.add(job));
  }

  remove(job: J): void {
    if (job.queueIndex >= 0) this.change(job.place, (queue) => queue.remove(job));
  }

  /** Removes the first job for this target, and those of its route that may begin with it. */
  take(target: JobTarget): J[] {
    const taken: J[] = [];
    const queues = this.queuesFor(target);
    let job = first(queues);
    const route = job?.place.route ?? '';
    const sameRoute = queues.filter(({ place }) => place.route === route);
    for (const size = target.routes.get(route) ?? 0; job !== undefined && taken.length < size;) {
      this.remove(job);
      taken.push(job);
      job = first(sameRoute);
    }
    return taken;
  }
}

/** The most urgent job of these queues; of these, the one that was accepted first. */
function first<J extends WaitingJob>(queues: readonly JobQueue<J>[]): J | undefined {
  let best: J | undefined;
  for (const { first: job } of queues) {
    if (job !== undefined && (best === undefined || isBefore(job, best))) best = job;
  }
  return best;
}

function isBefore({ seq, place }: WaitingJob, other: WaitingJob): boolean {
  return place.priority === other.place.priority ? seq < other.seq : place.priority > other.place.priority;
}
