/**
 * The stream of a function's answer, for `for await`. Each item stands behind its length, and may come in any parts. An item
 * that was not read holds back the worker: its bytes are confirmed when the reader takes it.
 */
import type { ServeError } from '../../protocol/errors.js';
import type { ValueFormat } from '../../protocol/values/value-format.js';

const LENGTH_BYTES = 4;

interface Item {
  readonly bytes: Buffer;
  /** Confirms the part of the stream that this item ends; null if other items end it. */
  taken: (() => void) | null;
}

interface Reader {
  resolve(result: IteratorResult<unknown, undefined>): void;
  reject(error: unknown): void;
}

const DONE = { done: true, value: undefined } as const;

export class ItemStream implements AsyncIterableIterator<unknown> {
  readonly #format: ValueFormat;
  readonly #onReturn: () => void;
  /** Parts of an item that has not come as a whole, their bytes, and how many are needed before they are looked at. */
  #parts: Buffer[] = [];
  #bytes = 0;
  #needed = LENGTH_BYTES;
  readonly #items: Item[] = [];
  readonly #readers: Reader[] = [];
  #end: { readonly error: ServeError | null } | null = null;

  /** `onReturn` is called if the reader leaves before the end. */
  constructor(format: ValueFormat, onReturn: () => void) {
    this.#format = format;
    this.#onReturn = onReturn;
  }

  /** Takes the next part of the stream; the pieces are the stream's from now on. */
  push(pieces: readonly Buffer[], taken: () => void): void {
    for (const piece of pieces) this.#bytes += piece.length;
    this.#parts.push(...pieces);
    const last = this.#bytes < this.#needed ? null : this.#takeItems();
    if (last === null) taken();
    else last.taken = taken;
    this.#serve();
  }

  /** Takes the items that have come as a whole. Returns the last one, null if there is none. */
  #takeItems(): Item | null {
    let rest = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    let last: Item | null = null;
    this.#needed = LENGTH_BYTES;
    while (rest.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + rest.readUInt32LE(0);
      if (rest.length < end) {
        this.#needed = end;
        break;
      }
      last = { bytes: rest.subarray(LENGTH_BYTES, end), taken: null };
      this.#items.push(last);
      rest = rest.subarray(end);
    }
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    return last;
  }

  /** No more items come; with an error, the reader gets that after them. */
  end(error: ServeError | null): void {
    this.#end ??= { error };
    this.#serve();
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject });
      this.#serve();
    });
  }

  return(): Promise<IteratorResult<unknown, undefined>> {
    const isEarly = this.#end === null;
    this.#end = { error: null };
    this.#items.length = 0;
    if (isEarly) this.#onReturn();
    this.#serve();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #serve(): void {
    while (this.#readers.length > 0) {
      const item = this.#items.shift();
      if (item === undefined && this.#end === null) return;
      const reader = this.#readers.shift() as Reader;
      if (item !== undefined) this.#give(item, reader);
      else this.#giveEnd(reader);
    }
  }

  /** An error is given once, as by a generator that threw. */
  #giveEnd(reader: Reader): void {
    const error = this.#end?.error ?? null;
    this.#end = { error: null };
    if (error === null) reader.resolve(DONE);
    else reader.reject(error);
  }

  #give({ bytes, taken }: Item, reader: Reader): void {
    try {
      reader.resolve({ done: false, value: this.#format.read(bytes).value });
    } catch (thrown) {
      reader.reject(thrown);
    }
    taken?.();
  }
}
