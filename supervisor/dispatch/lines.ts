/**
 * The calls that wait for the workers of a model: one line per route, because a batch has one route, and the order of arrival
 * over all lines. A line is a linked list, from which any call can be removed: every step takes constant time.
 */
import type { ByteBudget } from './arrivals.js';

/** A call, as the lines and the batcher see it. */
export abstract class Waiting {
  /** Its neighbours in line; only `Line` reads and writes them. */
  previousInLine: this | null = null;
  nextInLine: this | null = null;
  /** Order of arrival among all that wait for the same workers; kept by a call that comes back. */
  arrivalOrder = 0;
  /** When it joined the line, on the monotonic clock; kept by a call that comes back. */
  inLineSinceMs = 0;
  /** Number of workers that died holding it before it began. */
  losses = 0;

  abstract readonly route: string;
  /** Bytes that it holds while it waits. */
  abstract readonly bodyBytes: number;
  /** When its client stops waiting, on the monotonic clock; null without a deadline. */
  abstract readonly deadlineAtMs: number | null;
  /** Whether it is a WebSocket, which shares a worker with no other call: neither in a batch, nor sent ahead. */
  abstract readonly isConversation: boolean;
}

/** The waiting calls of one route, first in, first out. Only its own methods and `Lines` change it. */
export class Line<T extends Waiting> {
  length = 0;
  first: T | null = null;
  last: T | null = null;

  push(call: T): void {
    call.previousInLine = this.last;
    if (this.last === null) this.first = call;
    else this.last.nextInLine = call;
    this.last = call;
    this.length += 1;
  }

  /** Puts a call that was first in line before back to the head. */
  unshift(call: T): void {
    call.nextInLine = this.first;
    if (this.first === null) this.last = call;
    else this.first.previousInLine = call;
    this.first = call;
    this.length += 1;
  }

  /** Takes a call out of the line. The caller knows that it is in this line. */
  remove(call: T): void {
    const previous = call.previousInLine;
    const next = call.nextInLine;
    if (previous === null) this.first = next;
    else previous.nextInLine = next;
    if (next === null) this.last = previous;
    else next.previousInLine = previous;
    call.previousInLine = null;
    call.nextInLine = null;
    this.length -= 1;
  }
}

/** Only its own methods change it. */
export class Lines<T extends Waiting> {
  length = 0;
  /** Bytes of the request bodies that waiting calls hold. */
  bytes = 0;
  /** The line of each route that was called lately; some may be empty. An array is walked without allocating. */
  all: readonly Line<T>[] = [];
  readonly #byRoute = new Map<string, Line<T>>();
  readonly #budget: Pick<ByteBudget, 'bytes'>;
  #arrivals = 0;

  /** Counts the bytes of the calls in `budget` too. */
  constructor(budget: Pick<ByteBudget, 'bytes'>) {
    this.#budget = budget;
  }

  /** Finds the call that arrived first of all that wait. */
  findOldest(): T | null {
    let oldest: T | null = null;
    for (const { first } of this.all) {
      if (first !== null && (oldest === null || first.arrivalOrder < oldest.arrivalOrder)) oldest = first;
    }
    return oldest;
  }

  /** Finds the call that arrived last of all that wait. */
  findNewest(): T | null {
    let newest: T | null = null;
    for (const { last } of this.all) {
      if (last !== null && (newest === null || last.arrivalOrder > newest.arrivalOrder)) newest = last;
    }
    return newest;
  }

  push(call: T, nowMs: number): void {
    this.#arrivals += 1;
    call.arrivalOrder = this.#arrivals;
    call.inLineSinceMs = nowMs;
    this.#lineOf(call).push(call);
    this.#count(1, call.bodyBytes);
  }

  /** Puts a call that was in line before back to the head of its line. */
  putBack(call: T): void {
    this.#lineOf(call).unshift(call);
    this.#count(1, call.bodyBytes);
  }

  /** The caller knows that the call waits here. */
  remove(call: T): void {
    this.#lineOf(call).remove(call);
    this.#count(-1, -call.bodyBytes);
  }

  /** Iterates over the calls, line by line. The consumer may remove the call that it was given. */
  *[Symbol.iterator](): Generator<T> {
    for (const line of this.all) {
      for (let call = line.first; call !== null;) {
        const next = call.nextInLine;
        yield call;
        call = next;
      }
    }
  }

  /** Drops empty lines: their routes may be gone. */
  forgetEmpty(): void {
    for (const [route, line] of this.#byRoute) if (line.length === 0) this.#byRoute.delete(route);
    this.all = [...this.#byRoute.values()];
  }

  #lineOf({ route }: T): Line<T> {
    return this.#byRoute.get(route) ?? this.#open(route);
  }

  #open(route: string): Line<T> {
    const line = new Line<T>();
    this.#byRoute.set(route, line);
    this.all = [...this.all, line];
    return line;
  }

  #count(calls: number, bytes: number): void {
    this.length += calls;
    this.bytes += bytes;
    this.#budget.bytes += bytes;
  }
}
