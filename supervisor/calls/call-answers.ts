/**
 * Handles a worker's messages about the calls that it holds: whole answers, parts of streams, messages of WebSockets, and
 * the one ending of each call. An ending frees the call's place in the worker, then answers its owner. A part of a stream or
 * a WebSocket may change whether its call waits for the client, which then grants the worker credit for as much again.
 */
import { BodyAssembler, totalBytes } from '../../protocol/wire/body-assembler.js';
import { ServeError, asCallErrorCode, protocolError } from '../../protocol/errors.js';
import {
  DATA_OVERHEAD_BYTES,
  FIRST_WEBHOOK_REF,
  type Message,
  type ReplyHead,
} from '../../protocol/wire/messages.js';
import { leaveToCollector, slabs } from '../memory/slabs.js';
import type { CallHolder, HeldCall } from './held-batch.js';

/** An answer whose body is still arriving. */
interface PartialResult {
  readonly call: HeldCall;
  readonly head: ReplyHead;
  readonly runMs: number;
  /** Gives the memory of its body back. */
  release: () => void;
}

export class CallAnswers {
  maxOutputBytes: number;
  readonly #worker: CallHolder;
  readonly #results = new BodyAssembler<PartialResult>((bytes, result) => {
    const { buffer, release } = slabs.take(bytes);
    result.release = release;
    return buffer;
  });

  constructor(worker: CallHolder, maxOutputBytes: number) {
    this.#worker = worker;
    this.maxOutputBytes = maxOutputBytes;
  }

  /** Returns the buffer for the body of a message that is still arriving; null for the channel's own. */
  room(message: Message, bytes: number): Buffer | null {
    return message.type === 'body' ? this.#results.room(message.id, bytes) : null;
  }

  /** Takes a message about a call. Returns false if it is about something else. @throws SERVE_PROTOCOL */
  take(message: Message, pieces: Buffer[]): boolean {
    switch (message.type) {
      case 'result':
        this.#onResult(message, pieces);
        return true;
      case 'body': {
        if (message.id >= FIRST_WEBHOOK_REF) return false;
        const whole = this.#results.add(message.id, pieces);
        if (whole !== null) this.#onWholeResult(whole.owner, whole.pieces);
        return true;
      }
      case 'head':
        this.#findBegun(message.id).call.head(message);
        return true;
      case 'progress':
        this.#findBegun(message.id).call.progress(message.fraction, message.text);
        return true;
      case 'chunk':
        this.#onChunk(this.#findBegun(message.id), pieces);
        return true;
      case 'data':
      case 'credit':
      case 'waiting':
      case 'close':
        this.#onConversation(this.#findBegun(message.id), message, pieces);
        return true;
      case 'end':
        this.#onEnd(this.#findBegun(message.id), message.runMs);
        return true;
      case 'error':
        this.#onError(message);
        return true;
      default:
        return false;
    }
  }

  #onResult(message: Message & { type: 'result' }, pieces: Buffer[]): void {
    const held = this.#findAnswered(message.id, message.runMs);
    if (this.#worker.channel.isSending(message.id)) {
      throw protocolError(`an answer to call ${message.id} before its body was read to the end`);
    }
    if (message.bodyBytes > this.maxOutputBytes) {
      throw protocolError(`a result of ${message.bodyBytes} bytes; ${this.maxOutputBytes} are allowed`);
    }
    const owner: PartialResult = {
      call: held,
      head: message,
      runMs: message.runMs,
      release: leaveToCollector,
    };
    const whole = this.#results.start(message.id, owner, message.bodyBytes, pieces);
    if (whole !== null) this.#onWholeResult(owner, whole);
  }

  #onWholeResult({ call: held, head, runMs, release }: PartialResult, pieces: Buffer[]): void {
    const bodyBytes = totalBytes(pieces);
    held.call.replyBytes = bodyBytes;
    // Feed the worker first, then answer the client.
    this.#worker.release(held, runMs);
    // An answer proves that the worker has read the whole body: nothing of it waits in the pipe.
    held.call.releaseBody();
    held.call.reply(head, pieces, bodyBytes, runMs, release);
  }

  /** Passes on a part of a streamed answer. */
  #onChunk(held: HeldCall, pieces: Buffer[]): void {
    if (held.call.settled) return; // cancelled: the worker needs no credit any more
    held.call.chunk(pieces, this.#onceTaken(held, totalBytes(pieces)));
  }

  /** Handles a message of a WebSocket's app. @throws SERVE_PROTOCOL if the call is not a WebSocket */
  #onConversation(
    held: HeldCall,
    message: Message & { type: 'data' | 'credit' | 'waiting' | 'close' },
    pieces: Buffer[],
  ): void {
    const { call, id } = held;
    const { conversation } = call;
    if (conversation === null) throw protocolError(`${message.type} in call ${id}, which is not a WebSocket`);
    if (call.settled) return;
    if (message.type === 'data') {
      const cost = totalBytes(pieces) + DATA_OVERHEAD_BYTES;
      conversation.data(message, pieces, this.#onceTaken(held, cost));
    } else if (message.type === 'credit') conversation.credit(message.bytes);
    else if (message.type === 'close') conversation.close(message.code, message.reason);
    else if (held.onAppWaits(message.received)) conversation.waiting();
  }

  /** Counts bytes sent to the client; the function returned is called once the client has taken them, and grants as much again. */
  #onceTaken(held: HeldCall, bytes: number): () => void {
    held.countUnread(bytes);
    return () => {
      held.countUnread(-bytes);
      this.#worker.channel.send({ type: 'credit', id: held.id, bytes });
      this.#worker.flushSoon();
    };
  }

  #onError(message: Message & { type: 'error' }): void {
    const { id, runMs, detail, status, kind, issues = [] } = message;
    const held = this.#worker.find(id);
    this.#checkNoResult(id);
    if (runMs > 0) this.#markBegun(held, runMs);
    else if (held.batch.calls.length > 1) this.#worker.learnBegun(); // the note may name this call, and all calls of the batch have begun
    const error = new ServeError(asCallErrorCode(message.code), message.message, {
      detail,
      status,
      kind,
      issues,
    });
    if (!held.call.settled) this.#worker.onCallError(held.call, error);
    held.call.fail(error, runMs);
    this.#worker.release(held, null);
  }

  #onEnd(held: HeldCall, runMs: number): void {
    this.#checkNoResult(held.id);
    held.call.end(runMs);
    // The duration of a stream depends on its reader too; it predicts nothing.
    this.#worker.release(held, null);
  }

  #checkNoResult(id: number): void {
    if (this.#results.drop(id) !== null)
      throw protocolError(`another ending of call ${id} inside its result`);
  }

  /** An answer proves that its call has begun. At the first one, the note is checked: the worker must write notes. */
  #findAnswered(id: number, runMs: number): HeldCall {
    if (this.#worker.finishedCalls === 0) return this.#findBegun(id);
    const held = this.#worker.find(id);
    this.#markBegun(held, runMs);
    return held;
  }

  #findBegun(id: number): HeldCall {
    const held = this.#worker.find(id);
    if (!held.knownBegun) this.#worker.learnBegun();
    if (!held.knownBegun) throw protocolError(`an answer to call ${id}, which never began`);
    this.#checkIsActive(held);
    return held;
  }

  #markBegun(held: HeldCall, runMs: number): void {
    this.#checkIsActive(held);
    if (!held.knownBegun) held.batch.begin(held, performance.now() - runMs);
  }

  #checkIsActive(held: HeldCall): void {
    if (this.#worker.isActive(held)) return;
    throw protocolError(`an answer to call ${held.id}, before those sent earlier have ended`);
  }
}
