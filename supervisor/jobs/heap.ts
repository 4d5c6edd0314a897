/** The first of many items, any of which can be removed. A step takes as long as the logarithm of their number. */

/** `K`: the property of an item that has its place in the heap, -1 if it is in none; only the heap writes it. */
export class Heap<K extends string, T extends Record<K, number>> {
  readonly #items: T[] = [];
  readonly #key: K;
  readonly #valueOf: (item: T) => number;

  /** The item with the least value comes first; a value may change only while its item is in no heap. */
  constructor(key: K, valueOf: (item: T) => number) {
    this.#key = key;
    this.#valueOf = valueOf;
  }

  get length(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  /** The least value; Infinity if there is no item. */
  get least(): number {
    return this.#value(0);
  }

  add(item: T): void {
    this.#put(item, this.#items.length);
    this.#rise(item);
  }

  /** Does nothing for an item that is not here. */
  remove(item: T): void {
    const at = item[this.#key];
    if (at < 0) return;
    (item as Record<K, number>)[this.#key] = -1;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#put(last, at);
    this.#rise(last);
    this.#sink(last);
  }

  #rise(item: T): void {
    const value = this.#valueOf(item);
    for (let at = item[this.#key]; at > 0; at = item[this.#key]) {
      const parent = (at - 1) >> 1;
      if (this.#value(parent) <= value) return;
      this.#swap(item, parent);
    }
  }

  #sink(item: T): void {
    const value = this.#valueOf(item);
    for (;;) {
      const left = 2 * item[this.#key] + 1;
      const least = this.#value(left + 1) < this.#value(left) ? left + 1 : left;
      if (this.#value(least) >= value) return;
      this.#swap(item, least);
    }
  }

  #value(at: number): number {
    const item = this.#items[at];
    return item === undefined ? Infinity : this.#valueOf(item);
  }

  #swap(item: T, at: number): void {
    this.#put(this.#items[at] as T, item[this.#key]);
    this.#put(item, at);
  }

  #put(item: T, at: number): void {
    this.#items[at] = item;
    (item as Record<K, number>)[this.#key] = at;
  }
}
