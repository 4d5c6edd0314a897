/** A linked list of waiting jobs, first in, first out, from which any job can be removed. Every step takes constant time. */

/** An entry of a `JobQueue`. */
export abstract class InLine {
  /** Its neighbours in the queue; only `JobQueue` reads and writes them. */
  previousInLine: InLine | null = null;
  nextInLine: InLine | null = null;
  /** Order of arrival among all that wait for the same workers; kept by an entry that comes back. */
  arrivalOrder = 0;
  /** When it joined the queue, on the monotonic clock; kept by an entry that comes back. */
  inLineSinceMs = 0;

  /** Bytes that it holds while it waits. */
  abstract get bodyBytes(): number;
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

  /** The last in line; null if none waits. */
  get last(): T | null {
    return this.#tail as T | null;
  }

  /** Returns the job behind `job`, which is in this queue. */
  after(job: T): T | null {
    return job.nextInLine as T | null;
  }

  push(job: T): void {
    job.previousInLine = this.#tail;
    if (this.#tail === null) this.#head = job;
    else this.#tail.nextInLine = job;
    this.#tail = job;
    this.#count(1, job.bodyBytes);
  }

  /** Puts a job that was first in line before back to the head. */
  unshift(job: T): void {
    job.nextInLine = this.#head;
    if (this.#head === null) this.#tail = job;
    else this.#head.previousInLine = job;
    this.#head = job;
    this.#count(1, job.bodyBytes);
  }

  shift(): T | null {
    const job = this.peek();
    if (job !== null) this.remove(job);
    return job;
  }

  /** Takes a waiting job out of the queue. The caller knows that it is in this queue. */
  remove(job: T): void {
    const { previousInLine, nextInLine } = job;
    if (previousInLine === null) this.#head = nextInLine;
    else previousInLine.nextInLine = nextInLine;
    if (nextInLine === null) this.#tail = previousInLine;
    else nextInLine.previousInLine = previousInLine;
    job.previousInLine = null;
    job.nextInLine = null;
    this.#count(-1, -job.bodyBytes);
  }

  *[Symbol.iterator](): Generator<T> {
    for (let job = this.#head; job !== null;) {
      const next = job.nextInLine; // the consumer may remove the job that it was given
      yield job as T;
      job = next;
    }
  }

  #count(jobs: number, bytes: number): void {
    this.#length += jobs;
    this.#bytes += bytes;
  }
}
