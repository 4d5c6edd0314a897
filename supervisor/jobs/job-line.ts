/**
 * Due jobs of one place in memory, in order of acceptance. A new job comes last and the first one leaves, both in constant
 * time: a line may be 100,000 jobs long, and the array's own `shift` would move all of them.
 */

export interface Ordered {
  readonly order: number;
}

/** Fewer empty places at the front are not worth a copy. */
const LEAST_EMPTY = 1000;

export class JobLine<J extends Ordered> {
  /** Empty up to `#first`. */
  #jobs: (J | undefined)[] = [];
  #first = 0;

  get length(): number {
    return this.#jobs.length - this.#first;
  }

  peek(): J | undefined {
    return this.#jobs[this.#first];
  }

  shift(): J | undefined {
    const job = this.peek();
    if (job === undefined) return undefined;
    this.#jobs[this.#first] = undefined;
    this.#first += 1;
    if (this.#first >= LEAST_EMPTY && 2 * this.#first >= this.#jobs.length) {
      this.#jobs = this.#jobs.slice(this.#first);
      this.#first = 0;
    }
    return job;
  }

  add(job: J): void {
    const last = this.#jobs.at(-1);
    if (last === undefined || last.order < job.order) this.#jobs.push(job);
    else this.#jobs.splice(this.#positionOf(job.order), 0, job);
  }

  /** Returns whether it was here. */
  remove(job: J): boolean {
    if (this.peek() === job) return this.shift() !== undefined;
    const at = this.#positionOf(job.order);
    if (this.#jobs[at] !== job) return false;
    this.#jobs.splice(at, 1);
    return true;
  }

  /** Index of the first job whose order is not below this one. */
  #positionOf(order: number): number {
    let [low, high] = [this.#first, this.#jobs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#jobs[middle] as J).order < order) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
