/**
 * The calls that wait for the workers of a model: one line per route, because a batch has one route, and the order of arrival
 * over all lines.
 */
import type { ByteBudget } from './arrivals.js';
import { InLine, CallQueue } from './queue.js';

/** A call, as the lines and the batcher see it. */
export interface Waiting extends InLine {
  readonly route: string;
  /** When its client stops waiting, on the monotonic clock; null without a deadline. */
  readonly deadlineAtMs: number | null;
  /** Whether it is a WebSocket, which shares a worker with no other call: neither in a batch, nor sent ahead. */
  readonly isConversation: boolean;
  /** Number of workers that died holding it before it began. */
  readonly losses: number;
}

export type Line<T extends Waiting> = CallQueue<T>;

export class Lines<T extends Waiting> {
  readonly #byRoute = new Map<string, Line<T>>();
  /** The same lines: an array is walked without allocating. */
  #all: Line<T>[] = [];
  readonly #budget: Pick<ByteBudget, 'count'>;
  #length = 0;
  #bytes = 0;
  #arrivals = 0;

  /** Counts the bytes of the calls in `budget` too. */
  constructor(budget: Pick<ByteBudget, 'count'>) {
    this.#budget = budget;
  }

  get length(): number {
    return this.#length;
  }

  /** Bytes of the request bodies that waiting calls hold. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The line of each route that was called lately; some may be empty. */
  get all(): readonly Line<T>[] {
    return this.#all;
  }

  /** Finds the call that arrived first of all that wait. */
  findOldest(): T | null {
    let oldest: T | null = null;
    for (const line of this.#all) {
      const head = line.peek();
      if (head !== null && (oldest === null || head.arrivalOrder < oldest.arrivalOrder)) oldest = head;
    }
    return oldest;
  }

  /** Finds the call that arrived last of all that wait. */
  findNewest(): T | null {
    let newest: T | null = null;
    for (const { last } of this.#all) {
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
    for (const line of this.#all) yield* line;
  }

  /** Drops empty lines: their routes may be gone. */
  forgetEmpty(): void {
    for (const [route, line] of this.#byRoute) if (line.length === 0) this.#byRoute.delete(route);
    this.#all = [...this.#byRoute.values()];
  }

  #lineOf({ route }: T): Line<T> {
    return this.#byRoute.get(route) ?? this.#open(route);
  }

  #open(route: string): Line<T> {
    const line = new CallQueue<T>();
    this.#byRoute.set(route, line);
    this.#all.push(line);
    return line;
  }

  #count(calls: number, bytes: number): void {
    this.#length += calls;
    this.#bytes += bytes;
    this.#budget.count(bytes);
  }
}
