/** Receives the answer of a function's call, and settles the caller's promise: with the value, or with a stream of values. */
import { asCallers, type ServeError } from '../../protocol/errors.js';
import type { ValueFormat } from '../../protocol/values/value-format.js';
import { joinPieces } from '../../protocol/wire/body-assembler.js';
import type { ReplyHead } from '../../protocol/wire/messages.js';
import type { Call, Sink } from '../dispatch/call.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { FunctionCallOptions } from './function-types.js';
import { ItemStream } from './item-stream.js';

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
