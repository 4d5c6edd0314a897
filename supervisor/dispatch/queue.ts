/**
 * A line of jobs, first in, first out, from which any job can be removed: a list linked through the jobs, every step in
 * constant time.
 */
let previousOf: (entry: InLine) => InLine | null;
let nextOf: (entry: InLine) => InLine | null;
let link: (previous: InLine | null, next: InLine | null) => void;
let unlink: (entry: InLine) => void;

/** What can stand in a line. Its neighbours are private: only this file, the line itself, reads and writes them. */
export abstract class InLine {
  #previous: InLine | null = null;
  #next: InLine | null = null;
  /** Order of arrival among all that wait for the same workers; kept by one that comes back. */
  turn = 0;
  /** When it came into line, on the monotonic clock; kept by one that comes back. */
  inLineSinceMs = 0;

  /** Bytes that it holds while it waits. */
  abstract get bodyBytes(): number;

  static {
    previousOf = (entry) => entry.#previous;
    nextOf = (entry) => entry.#next;
    link = (previous, next) => {
      if (previous !== null) previous.#next = next;
      if (next !== null) next.#previous = previous;
    };
    unlink = (entry) => {
      link(entry.#previous, entry.#next);
      entry.#previous = null;
      entry.#next = null;
    };
  }
}

export class JobQueue<T extends InLine> {
  #head: InLine | null = null;
  #tail: InLine | null = null;
  #length = 0;
  #bytes = 0;

  get length(): number {
    return this.#length;
  }

  /** Bytes of the request bodies that waiting jobs hold. */
  get bytes(): number {
    return this.#bytes;
  }

  peek(): T | null {
    return this.#head as T | null;
  }

  /** Returns the one behind `job`, which is in this queue. */
  after(job: T): T | null {
    return nextOf(job) as T | null;
  }

  push(job: T): void {
    if (this.#tail === null) this.#head = job;
    link(this.#tail, job);
    this.#tail = job;
    this.#count(1, job.bodyBytes);
  }

  /** Puts a job back to the head: it was first in line before. */
  unshift(job: T): void {
    if (this.#head === null) this.#tail = job;
    link(job, this.#head);
    this.#head = job;
    this.#count(1, job.bodyBytes);
  }

  shift(): T | null {
    const job = this.peek();
    if (job !== null) this.remove(job);
    return job;
  }

  /** Takes a waiting job out of the line. The caller knows that it is in this queue. */
  remove(job: T): void {
    const previous = previousOf(job);
    const next = nextOf(job);
    if (previous === null) this.#head = next;
    if (next === null) this.#tail = previous;
    unlink(job);
    this.#count(-1, -job.bodyBytes);
  }

  *[Symbol.iterator](): Generator<T> {
    for (let job = this.#head; job !== null;) {
      const next = nextOf(job); // the consumer may remove the one it was given
      yield job as T;
      job = next;
    }
  }

  #count(jobs: number, bytes: number): void {
    this.#length += jobs;
    this.#bytes += bytes;
  }
}
