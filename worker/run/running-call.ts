/**
 * One call that has begun, up to its ending.
 *
 * 1. The returned or thrown value becomes messages: a whole answer, a stream, or the rest of a WebSocket's messages.
 * 2. The ending is put into the channel: `result`, `end` or `error`. Then the loop that began the call is called back.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Channel } from '../../protocol/wire/channel.js';
import { ServeError } from '../../protocol/errors.js';
import { MAX_TEXT_CHARS } from '../../protocol/wire/limits.js';
import type { Call, ReplyHead, Thrown } from '../../protocol/wire/messages.js';
import type { LoadedApp } from '../adapters/loaded-app.js';
import { acceptedInput, acceptedOutput } from '../adapters/schemas.js';
import { CallContext, type CallSurroundings } from './call-context.js';
import { CallSocket } from './call-socket.js';
import { failureOf, thrownAsText } from '../failures/failure.js';
import type { InputWishes } from '../api/route-options.js';
import type { EncodedOutput, Exchange } from '../formats/body-format.js';
import { exchangeOf } from '../formats/index.js';
import { Inputs } from '../formats/inputs.js';
import { writeJson } from '../formats/json.js';
import { writeResult } from '../formats/mms.js';
import { readInput } from '../formats/read-input.js';
import type { PrintAttribution } from '../report/print-attribution.js';
import { hintOnce } from '../process/hint-once.js';
import { encodeOutput } from '../reply/encode-output.js';
import { isPotassiumResponse, replyOfResponse, isAnswer, replyOf, isResponse } from '../reply/reply-of.js';
import { PLAIN_HEAD, Reply, type AnyIterator } from '../formats/reply.js';
import { iteratorOf, sendStream } from '../reply/stream.js';
import { StreamSender } from './credit.js';
import { isThenable } from '../values/not-data.js';

/** A call whose body is complete. */
export interface WaitingCall {
  readonly call: Call;
  readonly pieces: Buffer[];
}

/** Calls that have begun together, one or a batch, until the last of them has ended. */
export interface Run {
  readonly beganAtMs: number;
  /** Whether several answers may be encoded before the first of them has left the process. */
  readonly answersTogether: boolean;
  /** Number of its calls that have no ending. */
  open: number;
  /** Endings are put into the channel one after the other, so that they leave together. */
  isDelivering: boolean;
  /** The error of the call that ended last; an error that shows a broken process takes precedence. */
  thrown: unknown;
}

/** The parts that all calls of a worker share. */
export interface CallHost extends CallSurroundings {
  readonly app: LoadedApp;
  readonly prints: PrintAttribution;
  readonly maxOutputBytes: number;
  readonly streamWindowBytes: number;
  /** The most calls that run at the same time; the front sends no more. */
  readonly concurrency: number;
  /** Called once per call, when its ending is in the channel. */
  onEnded(call: RunningCall): void;
}

export class RunningCall {
  readonly call: Call;
  readonly ctx: CallContext;
  /** The connection, if the call is a WebSocket. */
  readonly socket: CallSocket | null;
  readonly run: Run;
  readonly #host: CallHost;
  #stream: StreamSender | null = null;
  #hasEnded = false;
  #onEnded: (() => void) | null = null;
  /** Writes the answer, if the dialect has a format of its own. */
  #exchange: Exchange | null = null;
  /** True once no client waits for the call any more. */
  cancelled = false;
  /** The value that the app got, until it has answered: its error may be about that. */
  input: unknown = undefined;
  /** The error that failed the call; undefined if there was none. */
  thrown: unknown = undefined;

  /** Call it after the note of the call's beginning is written. */
  constructor(host: CallHost, { call, pieces }: WaitingCall, run: Run) {
    const { channel, streamWindowBytes } = host;
    this.#host = host;
    this.run = run;
    this.call = call;
    this.ctx = new CallContext(call, pieces, host);
    const isSocket = call.format === 'websocket';
    this.socket = isSocket ? new CallSocket(channel, call.id, streamWindowBytes) : null;
  }

  /** Resolves once it has ended: asked for once. */
  get settled(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#hasEnded) resolve();
      else this.#onEnded = resolve;
    });
  }

  #noteEnd(): void {
    this.#hasEnded = true;
    this.#host.onEnded(this);
    this.#onEnded?.();
  }

  get runMs(): number {
    return performance.now() - this.run.beganAtMs;
  }

  cancel(reason: string): void {
    this.cancelled = true;
    this.ctx.abort(reason);
    this.#stream?.cancel();
    this.socket?.cancel();
  }

  grantCredit(bytes: number): void {
    (this.#stream ?? this.socket)?.grant(bytes);
  }

  /** Returns the app's input, or a promise of it. @throws SERVE_BAD_BODY, SERVE_INPUT_INVALID (or rejects with it) */
  readInput(wishes: InputWishes): unknown {
    const { call, ctx } = this;
    const input = call.answer === 'auto' ? readInput(call, ctx.body, wishes) : this.#readInExchange(wishes);
    const schema = this.#host.app.schemas?.(call.route)?.input;
    if (schema === undefined) return input;
    const accept = (read: unknown): unknown => acceptedInput(schema, read);
    if (!isThenable(input)) return accept(input);
    return input.then((read) => (read instanceof Inputs ? read.accepted(accept) : accept(read)));
  }

  async #readInExchange(wishes: InputWishes): Promise<unknown> {
    const { call, ctx } = this;
    const exchange = await exchangeOf(call, this.#host.app.description);
    this.#exchange = exchange;
    ctx.isOfProgram = exchange.isOfProgram === true;
    if (call.format !== call.answer) return readInput(call, ctx.body, wishes);
    const input: unknown = await readInput(call, ctx.body, wishes, exchange);
    if (exchange.params !== undefined) ctx.params = exchange.params;
    return input;
  }

  /**
   * Answers with the value or promise that the app returned. Never throws: a value that cannot be sent fails the call.
   */
  answer(returned: unknown): void {
    try {
      const output = this.accepted(returned);
      if (!isThenable(output)) this.#deliver(output);
      // The callback of a thenable of the app may be called twice; a promise settles once.
      else
        Promise.resolve(output).then(
          (value) => this.#deliver(value),
          (thrown: unknown) => this.fail(thrown),
        );
    } catch (thrown) {
      this.fail(thrown); // the getter of `then` threw
    }
  }

  /** Returns the app's output as its schema returns it, or a promise of that. @throws SERVE_OUTPUT_INVALID (or rejects with it) */
  accepted(returned: unknown): unknown {
    return acceptedOutput(this.#host.app.schemas?.(this.call.route)?.output, returned);
  }

  #deliver(output: unknown): void {
    try {
      if (this.socket !== null) this.#orFail(this.#deliverSends(this.socket));
      else if (output instanceof Error) this.fail(output);
      else if (this.#exchange !== null) this.#orFail(this.#deliverInExchange(this.#exchange, output));
      else if (isResponse(output)) this.#orFail(replyOf(output).then((reply) => this.#deliverReply(reply)));
      else if (output instanceof Reply) this.#deliverReply(output);
      else if (isPotassiumResponse(output)) this.#deliverReply(replyOfResponse(output));
      else this.#deliverValue(output);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  /**
   * Fails the call. A Response that is thrown answers it instead, as a returned one does, unless the call is answered
   * already.
   */
  fail(thrown: unknown): void {
    if (isAnswer(thrown) && this.socket === null && this.#stream?.begun !== true) {
      this.#deliver(thrown);
      return;
    }
    this.thrown = thrown;
    const error = failureOf(thrown, this.input);
    this.ctx.end();
    const tells = this.#exchange?.isOfProgram === true && error !== thrown;
    sendError(this.#host.channel, this.call.id, error, this.runMs, tells ? thrownAsText(thrown) : undefined);
    this.#noteEnd();
  }

  #orFail(delivery: Promise<void>): void {
    delivery.catch((thrown: unknown) => this.fail(thrown));
  }

  async #deliverInExchange(exchange: Exchange, output: unknown): Promise<void> {
    this.hintNoReturn(output);
    const reply = await replyOf(output);
    try {
      this.#deliverReply(await exchange.write(reply));
    } catch (thrown) {
      if (reply.body.kind === 'stream') await reply.body.iterator.return?.();
      throw thrown;
    }
  }

  hintNoReturn(output: unknown): void {
    if (output === undefined && !this.cancelled && this.#exchange?.isOfProgram !== true)
      hintOnce('no return', () => noReturn(this.call.route));
  }

  #deliverValue(output: unknown): void {
    this.hintNoReturn(output);
    const iterator = iteratorOf(output);
    if (iterator !== null) {
      this.#orFail(this.#deliverStream(iterator, null));
      return;
    }
    const encoded = encodeOutput(output, this.call);
    if (!(encoded instanceof Promise)) this.#succeed(encoded);
    else
      encoded.then(
        (late) => this.#succeed(late),
        (thrown: unknown) => this.fail(thrown),
      );
  }

  /** If the head names no content type, the encoding's type is used. */
  #deliverReply({ head, body }: Reply): void {
    const { contentType } = head;
    if (body.kind === 'value') {
      this.#deliverValue(body.value);
    } else if (body.kind === 'stream') {
      const fixedHead = body.byAccept === true ? null : head;
      this.#orFail(this.#deliverStream(body.iterator, fixedHead, body.typeFromItem));
    } else if (body.kind === 'bytes') {
      this.#succeed({ contentType, body: body.bytes }, head);
    } else if (body.kind === 'json') {
      this.#succeed({ contentType, body: writeJson(body.value, this.call).body }, head);
    } else {
      const encoded = writeResult(body.value, this.call);
      this.#succeed(contentType === '' ? encoded : { contentType, body: encoded.body }, head);
    }
  }

  async #deliverStream(iterator: AnyIterator, head: ReplyHead | null, typeFromItem?: boolean): Promise<void> {
    const { call } = this;
    const { channel, prints, streamWindowBytes } = this.#host;
    this.input = undefined; // a stream may run for hours
    const stream = new StreamSender(channel, call.id, streamWindowBytes);
    this.#stream = stream;
    if (this.ctx.aborted) stream.cancel();
    const send = (): Promise<void> => sendStream(iterator, call.accept, head, stream, typeFromItem);
    // Async context that the app enters in this stream must not reach the other streams of its batch.
    const asyncContext = new AsyncResource('banana-serve stream');
    await asyncContext.runInAsyncScope(() => prints.run(call.requestId, send));
    if (stream.cancelled) throw new ServeError('SERVE_CANCELLED');
    this.#sendEnd();
  }

  #sendEnd(): void {
    this.ctx.end();
    this.#host.channel.send({ type: 'end', id: this.call.id, runMs: this.runMs });
    this.#noteEnd();
  }

  /** Ends a WebSocket call whose function has returned: the connection closes after the messages that are queued. */
  async #deliverSends(socket: CallSocket): Promise<void> {
    await socket.flushed();
    if (socket.cancelled) throw new ServeError('SERVE_CANCELLED');
    this.#sendEnd();
  }

  /**
   * Uses status, headers and phrase of `head`; the type comes from the encoder. Spreading it into one object with the
   * output would take 2 us of 9.
   */
  #succeed({ contentType, body: encoded }: EncodedOutput, head: ReplyHead = PLAIN_HEAD): void {
    const { status, headers, phrase } = head;
    const { channel, maxOutputBytes } = this.#host;
    const body = typeof encoded === 'string' ? utf8Of(encoded, this.run.answersTogether) : encoded;
    const bodyBytes = body.length;
    if (bodyBytes > maxOutputBytes) {
      const message = `The model's output is ${bodyBytes} bytes; --max-output allows ${maxOutputBytes}.`;
      this.fail(new ServeError('SERVE_OUTPUT_TOO_LARGE', message));
      return;
    }
    const { id } = this.call;
    const { runMs } = this;
    this.ctx.end();
    channel.sendBody(
      { type: 'result', id, status, contentType, headers, phrase, bodyBytes, runMs },
      id,
      [body],
      bodyBytes,
    );
    this.#noteEnd();
  }
}

/** Uses the reused memory for an answer that is alone until it has left the process. */
function utf8Of(text: string, answersTogether: boolean): Buffer {
  return answersTogether ? Buffer.from(text) : utf8InScratch(text);
}

function noReturn(route: string): string {
  return `The app returned nothing for a call of ${route}, so its client gets null: a \`return\` may be missing. Return null if it is meant.`;
}

/** Sends the ending of a call that failed. */
export function sendError(
  channel: Channel,
  id: number,
  error: ServeError,
  runMs: number,
  thrown?: Thrown,
): void {
  const { code, message, detail, status, kind, issues } = error;
  channel.send({
    type: 'error',
    id,
    code,
    message: message.slice(0, MAX_TEXT_CHARS),
    detail: detail.slice(0, MAX_TEXT_CHARS),
    runMs,
    status,
    kind,
    issues,
    ...(thrown === undefined ? {} : { thrown }),
  });
}

/** Maximum UTF-8 bytes of one UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3;

/**
 * Size of the reused memory in bytes. It is address space: only the part that is written to becomes memory. Longer
 * texts get memory of their own.
 */
const MAX_SCRATCH_BYTES = 48 * 1024 * 1024;

const encoder = new TextEncoder();
let scratch = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Returns the UTF-8 bytes of the text, valid until the next call of this function, in memory that is reused: one pass
 * instead of two, no allocation, no new pages. At 1 MB this takes 0.9 ms instead of 1.4 ms (docs/benchmarks.md). The bytes
 * must reach the channel in the same turn: encoders return text, so none of them can keep bytes of this memory across an
 * `await`, while the next answer overwrites them.
 */
export function utf8InScratch(text: string): Buffer {
  const needed = text.length * MAX_BYTES_PER_UNIT;
  if (needed > MAX_SCRATCH_BYTES) return Buffer.from(text);
  if (needed > scratch.length) scratch = Buffer.allocUnsafeSlow(Math.max(needed, 2 * scratch.length));
  const { written } = encoder.encodeInto(text, scratch);
  return scratch.subarray(0, written);
}
