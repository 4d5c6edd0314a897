/**
 * A line of jobs, first in, first out, from which any job can be removed: a list linked through the jobs, every step in
 * constant time.
 */
import type { Job } from './job.js';

export class JobQueue {
  #head: Job | null = null;
  #tail: Job | null = null;
  #length = 0;
  #bytes = 0;

  get length(): number {
    return this.#length;
  }

  /** Bytes of the request bodies that waiting jobs hold. */
  get bytes(): number {
    return this.#bytes;
  }

  peek(): Job | null {
    return this.#head;
  }

  push(job: Job): void {
    this.#insert(job, this.#tail, null);
  }

  /** Puts a job back to the head: it was first in line before. */
  unshift(job: Job): void {
    this.#insert(job, null, this.#head);
  }

  shift(): Job | null {
    const job = this.#head;
    if (job !== null) this.remove(job);
    return job;
  }

  /** Takes a waiting job out of the line. The caller knows that it is in this queue. */
  remove(job: Job): void {
    if (job.previous === null) this.#head = job.next;
    else job.previous.next = job.next;
    if (job.next === null) this.#tail = job.previous;
    else job.next.previous = job.previous;
    job.previous = null;
    job.next = null;
    this.#length -= 1;
    this.#bytes -= job.bodyBytes;
  }

  *[Symbol.iterator](): Generator<Job> {
    for (let job = this.#head; job !== null;) {
      const { next } = job; // the consumer may remove the one it was given
      yield job;
      job = next;
    }
  }

  #insert(job: Job, previous: Job | null, next: Job | null): void {
    job.previous = previous;
    job.next = next;
    if (previous === null) this.#head = job;
    else previous.next = job;
    if (next === null) this.#tail = job;
    else next.previous = job;
    this.#length += 1;
    this.#bytes += job.bodyBytes;
  }
}
