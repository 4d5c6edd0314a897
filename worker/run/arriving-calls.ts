/**
 * Collects calls while they arrive.
 *
 * A batch is delivered as a whole once its last frame has come and all its bodies are complete; a call that runs alone
 * is a batch of one. Input: the frames of `main.ts`. Output: batches for `run-loop.ts`.
 */
import { BodyAssembler, splitPieces } from '../../protocol/wire/body-assembler.js';
import { protocolError } from '../../protocol/errors.js';
import type { Call, CallFrame, Message } from '../../protocol/wire/messages.js';
import type { WaitingCall } from './running-call.js';

/** A call whose body may still be arriving. */
interface ArrivingCall {
  readonly call: Call;
  readonly batch: number;
  /** Null until the body is complete. */
  pieces: Buffer[] | null;
}

interface ArrivingBatch {
  calls: ArrivingCall[];
  /** True once the last frame of the batch has come. */
  isClosed: boolean;
}

export class ArrivingCalls {
  readonly #bodies = new BodyAssembler<ArrivingCall>();
  readonly #batches = new Map<number, ArrivingBatch>();
  readonly #onWhole: (batch: readonly WaitingCall[]) => void;

  /** `onWhole` gets the calls of one batch in the order in which they were sent; at least one. */
  constructor(onWhole: (batch: readonly WaitingCall[]) => void) {
    this.#onWhole = onWhole;
  }

  /** @throws SERVE_PROTOCOL */
  takeFrame({ calls, inlineBytes, batch: number, last }: CallFrame, pieces: readonly Buffer[]): void {
    const parts = splitPieces(pieces, inlineBytes);
    const batch = this.#batches.get(number) ?? { calls: [], isClosed: false };
    if (batch.isClosed) throw protocolError(`a second end of batch ${number}`);
    batch.isClosed = last;
    calls.forEach((call, i) => {
      const arriving: ArrivingCall = { call, batch: number, pieces: null };
      arriving.pieces = this.#bodies.start(call.id, arriving, call.bodyBytes, parts[i] as Buffer[]);
      batch.calls.push(arriving);
    });
    if (!this.#handOverIfWhole(number, batch)) this.#batches.set(number, batch);
  }

  /** Returns the memory for `bytes` bytes of a call's body; null if it has none of its own. */
  room(message: Message, bytes: number): Buffer | null {
    if (message.type === 'body') return this.#bodies.room(message.id, bytes);
    const call = message.type === 'call' && message.calls.length === 1 ? message.calls[0] : undefined;
    return call === undefined ? null : this.#bodies.firstRoom(call.bodyBytes, bytes);
  }

  /** @throws SERVE_PROTOCOL */
  takeBody(id: number, pieces: readonly Buffer[]): void {
    const done = this.#bodies.add(id, pieces);
    if (done === null) return;
    const arriving = done.owner;
    arriving.pieces = done.pieces;
    this.#handOverIfWhole(arriving.batch, this.#batches.get(arriving.batch) as ArrivingBatch);
  }

  /** Drops a call. Returns false if it is not here, because it was delivered or never came. */
  drop(id: number): boolean {
    for (const [number, batch] of this.#batches) {
      const others = batch.calls.filter(({ call }) => call.id !== id);
      if (others.length === batch.calls.length) continue;
      batch.calls = others;
      this.#bodies.drop(id);
      this.#handOverIfWhole(number, batch);
      return true;
    }
    return false;
  }

  #handOverIfWhole(number: number, { calls, isClosed }: ArrivingBatch): boolean {
    if (!isClosed || calls.some(({ pieces }) => pieces === null)) return false;
    this.#batches.delete(number);
    if (calls.length > 0) this.#onWhole(calls as WaitingCall[]);
    return true;
  }
}
