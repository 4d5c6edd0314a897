/**
 * The messages about the calls that a worker holds. `sendBatch` writes the calls to it. `CallAnswers` handles its own: whole
 * answers, parts of streams, messages of WebSockets, and the one ending of each call. An ending frees the call's place in the worker, then answers its owner. A part of a stream or
 * a WebSocket may change whether its call waits for the client, which then grants the worker credit for as much again.
 */
import { BodyAssembler, totalBytes } from '../../protocol/wire/body-assembler.js';
import { ServeError, asCallErrorCode, protocolError } from '../../protocol/errors.js';
import {
  DATA_OVERHEAD_BYTES,
  FIRST_WEBHOOK_REF,
  MAX_FRAGMENT_BYTES,
  MAX_HEAD_BYTES,
} from '../../protocol/wire/limits.js';
import type { Message, Thrown } from '../../protocol/wire/messages.js';
import { leaveToCollector, slabs } from '../memory/slabs.js';
import type { CallHolder, HeldCall } from './held-batch.js';
import type { Channel } from '../../protocol/wire/channel.js';
import type { Call, CallMessage } from '../dispatch/call.js';

/** An answer whose body is still arriving. */
interface PartialResult {
  readonly held: HeldCall;
  readonly result: Message & { type: 'result' };
}

export class CallAnswers {
  maxOutputBytes: number;
  readonly #worker: CallHolder;
  readonly #results = new BodyAssembler<PartialResult>((bytes) => slabs.take(bytes));

  constructor(worker: CallHolder, maxOutputBytes: number) {
    this.#worker = worker;
    this.maxOutputBytes = maxOutputBytes;
  }

  /** Returns the buffer for the body of a message that is still arriving; null for the channel's own. */
  room(message: Message, bytes: number): Buffer | null {
    if (message.type === 'body') return this.#results.room(message.id, bytes);
    if (message.type !== 'result' || message.bodyBytes > this.maxOutputBytes) return null;
    return this.#results.firstRoom(message.bodyBytes, bytes);
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
        if (whole !== null) this.#onWholeResult(whole.owner, whole.pieces, whole.release);
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
    const owner: PartialResult = { held, result: message };
    const whole = this.#results.start(message.id, owner, message.bodyBytes, pieces);
    if (whole !== null) this.#onWholeResult(owner, whole, leaveToCollector);
  }

  /** `release` gives the memory of its body back. */
  #onWholeResult({ held, result }: PartialResult, pieces: Buffer[], release: () => void): void {
    const { call } = held;
    const { bodyBytes, runMs } = result;
    call.replyBytes = bodyBytes;
    // Feed the worker first, then answer the client.
    this.#worker.release(held, runMs);
    // An answer proves that the worker has read the whole body: nothing of it waits in the pipe.
    call.lease.release();
    call.reply(result, pieces, bodyBytes, runMs, release);
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
    const { id, runMs, detail, status, kind, issues = [], thrown } = message;
    const held = this.#worker.find(id);
    this.#checkNoResult(id);
    if (runMs > 0) this.#markBegun(held, runMs);
    else if (held.batch.calls.length > 1) this.#worker.learnBegun(); // the note may name this call, and all calls of the batch have begun
    const error = new ServeError(asCallErrorCode(message.code), message.message, {
      detail,
      status,
      kind,
      issues,
      cause: thrown === undefined ? undefined : errorOf(thrown),
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
    this.#worker.checkActive(held);
    return held;
  }

  #markBegun(held: HeldCall, runMs: number): void {
    this.#worker.checkActive(held);
    if (!held.knownBegun) held.batch.begin(held, performance.now() - runMs);
  }
}

/** Rebuilds an error of the app for a caller that is a program. */
function errorOf({ name, message, stack }: Thrown): Error {
  const error = new Error(message);
  Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true });
  Object.defineProperty(error, 'stack', { value: stack, configurable: true, writable: true });
  return error;
}

/** Writes a batch to its worker, as consecutive `call` frames of which the last is marked. `number` names it on the wire. */
export function sendBatch(channel: Channel, number: number, calls: readonly Call[]): void {
  if (calls.length === 1) {
    // The usual case, without the arrays that only several calls need.
    const { message, pieces, bodyBytes } = calls[0] as Call;
    const frame = {
      type: 'call',
      calls: [message],
      inlineBytes: [bodyBytes],
      batch: number,
      last: true,
    } as const;
    channel.sendBody(frame, message.id, pieces, bodyBytes);
    return;
  }
  // A frame that waits behind others may be taken back, and its mark with it: so the mark gets its own frame.
  const mayWait = channel.hasTransfers || calls.some(({ bodyBytes }) => bodyBytes > MAX_FRAGMENT_BYTES);
  const frames = mayWait ? calls.map((call) => [call]) : framesOf(calls);
  frames.forEach((frame, i) => sendFrame(channel, number, frame, !mayWait && i === frames.length - 1));
  if (mayWait) sendFrame(channel, number, [], true);
}

function sendFrame(channel: Channel, batch: number, calls: readonly Call[], last: boolean): void {
  const messages = calls.map(({ message }) => message);
  const inlineBytes = calls.map(({ bodyBytes }) => bodyBytes);
  const pieces = calls.flatMap((call) => call.pieces);
  const bytes = inlineBytes.reduce((sum, one) => sum + one, 0);
  channel.sendBody(
    { type: 'call', calls: messages, inlineBytes, batch, last },
    messages[0]?.id ?? 0,
    pieces,
    bytes,
  );
}

/** Bytes of a head beside its calls, and of a call beside its texts. */
const SMALL_FIELDS_BYTES = 128;

/** Most bytes of a JavaScript character in UTF-8. */
const MAX_CHAR_BYTES = 3;

/** Puts as many calls into each frame as its head and body can hold; each body fits into a frame. */
function framesOf(calls: readonly Call[]): Call[][] {
  const frames: Call[][] = [];
  let frame: Call[] = [];
  let headBytes = 0;
  let bodyBytes = 0;
  for (const call of calls) {
    headBytes += headBytesOf(call.message);
    bodyBytes += call.bodyBytes;
    if (frame.length === 0 || bodyBytes > MAX_FRAGMENT_BYTES || headBytes > MAX_HEAD_BYTES) {
      frame = [];
      frames.push(frame);
      headBytes = SMALL_FIELDS_BYTES + headBytesOf(call.message);
      bodyBytes = call.bodyBytes;
    }
    frame.push(call);
  }
  return frames;
}

/** Most bytes that the call may take in a head. */
function headBytesOf(message: CallMessage): number {
  const { requestId, route, path, query, contentType, accept, headers, method, params } = message;
  const texts = [requestId, route, path, query, contentType, accept, headers, method, params];
  return SMALL_FIELDS_BYTES + MAX_CHAR_BYTES * texts.reduce((sum, { length }) => sum + length, 0);
}
