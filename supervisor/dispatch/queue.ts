/** A linked list of waiting calls, first in, first out, from which any call can be removed. Every step takes constant time. */

/** An entry of a `CallQueue`. */
export abstract class InLine {
  /** Its neighbours in the queue; only `CallQueue` reads and writes them. */
  previousInLine: InLine | null = null;
  nextInLine: InLine | null = null;
  /** Order of arrival among all that wait for the same workers; kept by an entry that comes back. */
  arrivalOrder = 0;
  /** When it joined the queue, on the monotonic clock; kept by an entry that comes back. */
  inLineSinceMs = 0;

  /** Bytes that it holds while it waits. */
  abstract get bodyBytes(): number;
}

export class CallQueue<T extends InLine> {
  #head: InLine | null = null;
  #tail: InLine | null = null;
  #length = 0;
  #bytes = 0;

  get length(): number {
    return this.#length;
  }

  /** Bytes of the request bodies that waiting calls hold. */
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

  /** Returns the call behind `call`, which is in this queue. */
  after(call: T): T | null {
    return call.nextInLine as T | null;
  }

  push(call: T): void {
    call.previousInLine = this.#tail;
    if (this.#tail === null) this.#head = call;
    else this.#tail.nextInLine = call;
    this.#tail = call;
    this.#count(1, call.bodyBytes);
  }

  /** Puts a call that was first in line before back to the head. */
  unshift(call: T): void {
    call.nextInLine = this.#head;
    if (this.#head === null) this.#tail = call;
    else this.#head.previousInLine = call;
    this.#head = call;
    this.#count(1, call.bodyBytes);
  }

  shift(): T | null {
    const call = this.peek();
    if (call !== null) this.remove(call);
    return call;
  }

  /** Takes a waiting call out of the queue. The caller knows that it is in this queue. */
  remove(call: T): void {
    const { previousInLine, nextInLine } = call;
    if (previousInLine === null) this.#head = nextInLine;
    else previousInLine.nextInLine = nextInLine;
    if (nextInLine === null) this.#tail = previousInLine;
    else nextInLine.previousInLine = previousInLine;
    call.previousInLine = null;
    call.nextInLine = null;
    this.#count(-1, -call.bodyBytes);
  }

  *[Symbol.iterator](): Generator<T> {
    for (let call = this.#head; call !== null;) {
      const next = call.nextInLine; // the consumer may remove the call that it was given
      yield call as T;
      call = next;
    }
  }

  #count(calls: number, bytes: number): void {
    this.#length += calls;
    this.#bytes += bytes;
  }
}
