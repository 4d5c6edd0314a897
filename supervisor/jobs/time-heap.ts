/** Items by time, the earliest first; any of them can be removed. A step takes as long as the logarithm of their number. */

export interface Timed {
  /** May change only while the item is not in a heap. */
  atMs: number;
  /** Its place in the heap, -1 if it is in none; only the heap writes it. */
  heapIndex: number;
}

export class TimeHeap<T extends Timed> {
  readonly #items: T[] = [];

  /** Infinity if there is no item. */
  get earliestMs(): number {
    return this.#time(0);
  }

  add(item: T): void {
    this.#put(item, this.#items.length);
    this.#rise(item);
  }

  /** Does nothing for an item that is not here. */
  remove(item: T): void {
    const at = item.heapIndex;
    if (at < 0) return;
    item.heapIndex = -1;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#put(last, at);
    this.#rise(last);
    this.#sink(last);
  }

  /** Removes the earliest item if its time has come; null if none has. */
  takeDue(nowMs: number): T | null {
    const [first] = this.#items;
    if (first === undefined || first.atMs > nowMs) return null;
    this.remove(first);
    return first;
  }

  #rise(item: T): void {
    while (item.heapIndex > 0) {
      const parent = (item.heapIndex - 1) >> 1;
      if (this.#time(parent) <= item.atMs) return;
      this.#swap(item, parent);
    }
  }

  #sink(item: T): void {
    for (;;) {
      const left = 2 * item.heapIndex + 1;
      const least = this.#time(left + 1) < this.#time(left) ? left + 1 : left;
      if (this.#time(least) >= item.atMs) return;
      this.#swap(item, least);
    }
  }

  #time(at: number): number {
    return this.#items[at]?.atMs ?? Infinity;
  }

  #swap(item: T, at: number): void {
    this.#put(this.#items[at] as T, item.heapIndex);
    this.#put(item, at);
  }

  #put(item: T, at: number): void {
    this.#items[at] = item;
    item.heapIndex = at;
  }
}
