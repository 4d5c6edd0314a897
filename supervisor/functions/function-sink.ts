/** Receives the answer of a function's call, and settles the caller's promise: with the value, or with a stream of values. */
import { asCallers, type ServeError } from '../../protocol/errors.js';
import type { ValueFormat } from '../../protocol/values/value-format.js';
import { joinPieces } from '../../protocol/wire/body-assembler.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { Call, Sink } from '../dispatch/call.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { FunctionCallOptions } from './function-types.js';

/** The caller of a function. */
export interface Caller {
  resolve(answer: unknown): void;
  reject(error: unknown): void;
  readonly onProgress: FunctionCallOptions['onProgress'];
  /** Called once, when nothing more comes; `error`: null if the call was answered. */
  onEnd(call: Call, error: ServeError | null): void;
}

export class FunctionSink implements Sink {
  readonly #dispatcher: Pick<Dispatcher, 'giveUp'>;
  readonly #format: ValueFormat;
  readonly #caller: Caller;
  #stream: ItemStream | null = null;

  constructor(dispatcher: Pick<Dispatcher, 'giveUp'>, format: ValueFormat, caller: Caller) {
    this.#dispatcher = dispatcher;
    this.#format = format;
    this.#caller = caller;
  }

  reply(call: Call, _head: ReplyHead, pieces: Buffer[], _bodyBytes: number, release: () => void): void {
    this.#caller.onEnd(call, null);
    try {
      const { value, hasViews } = this.#format.read(joinPieces(pieces));
      if (!hasViews) release();
      this.#caller.resolve(value);
    } catch (thrown) {
      this.#caller.reject(thrown);
    }
  }

  /** The caller gets the stream with its first item, or at its end. */
  head(call: Call): void {
    const left = 'the caller left the stream';
    this.#stream = new ItemStream(this.#format, () => this.#dispatcher.giveUp(call, 'SERVE_CANCELLED', left));
    this.#caller.resolve(this.#stream);
  }

  chunk(_call: Call, pieces: Buffer[], taken: () => void): void {
    this.#stream?.push(pieces, taken);
  }

  progress(call: Call, fraction: number, text: string): void {
    const { onProgress } = this.#caller;
    if (onProgress === undefined || call.settled) return;
    queueMicrotask(() => onProgress(fraction, text)); // what it throws is the program's
  }

  end(call: Call): void {
    this.#caller.onEnd(call, null);
    this.#stream?.end(null);
  }

  fail(call: Call, error: ServeError): void {
    this.#caller.onEnd(call, error);
    const own = asCallers(error, call.hasBegun);
    if (this.#stream === null) this.#caller.reject(own);
    else this.#stream.end(own);
  }
}

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

/**
 * The stream of a function's answer, for `for await`. Each item stands behind its length, and may come in any parts. An item
 * that was not read holds back the worker: its bytes are confirmed when the reader takes it.
 */
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
