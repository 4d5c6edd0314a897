/**
 * The call that runs now, from its begin to its one ending.
 *
 * 1. A note says that it begins, then the app runs: so a death tells exactly which calls may have run.
 * 2. What the app returns becomes messages: a whole answer, a stream, or what a WebSocket still has to send.
 * 3. The ending leaves: `result`, `end` or `error`. Then `run-loop.ts`, who began it, is told.
 *
 * One object runs all calls of a worker, one after the other.
 */
import { totalBytes } from '../protocol/body-assembler.js';
import type { Channel } from '../protocol/channel.js';
import { ServeError, describeThrown } from '../protocol/errors.js';
import { MAX_TEXT_CHARS, type Call, type DataPart, type ReplyHead } from '../protocol/messages.js';
import type { WorkerInfo } from './api/types.js';
import { appLog } from './app-log.js';
import { CallContext } from './call-context.js';
import { CallSocket } from './call-socket.js';
import type { EncodedOutput } from './formats/body-format.js';
import { writeJson } from './formats/json.js';
import { readInput } from './formats/read-input.js';
import type { LoadedApp } from './loaded-app.js';
import type { PrintAttribution } from './print-attribution.js';
import { encodeOutput } from './reply/encode-output.js';
import { Reply } from './reply/reply.js';
import { iteratorOf, sendStream } from './reply/stream.js';
import { isResponse, responseBody, responseHead } from './reply/web-response.js';
import { StreamSender } from './stream-sender.js';
import { isThenable } from './thenable.js';

export interface CallRunnerOptions {
  readonly channel: Channel;
  readonly app: LoadedApp;
  readonly worker: WorkerInfo;
  readonly prints: PrintAttribution;
  readonly maxOutputBytes: number;
  readonly streamWindowBytes: number;
  /** The front must know that this call may have run, even if this process dies at once. */
  noteBegun(id: number): void;
}

interface Running {
  readonly call: Call;
  readonly ctx: CallContext;
  readonly beganAtMs: number;
  stream: StreamSender | null;
  readonly socket: CallSocket | null;
}

export class CallRunner {
  readonly #options: CallRunnerOptions;
  readonly #channel: Channel;
  readonly #onEnded: (runMs: number) => void;
  #current: Running | null = null;

  /** `onEnded` is called once per call, when its ending is in the channel and the next call may begin. */
  constructor(options: CallRunnerOptions, onEnded: (runMs: number) => void) {
    this.#options = options;
    this.#channel = options.channel;
    this.#onEnded = onEnded;
  }

  get isRunning(): boolean {
    return this.#current !== null;
  }

  /** Empty between calls. */
  get requestId(): string {
    return this.#current?.call.requestId ?? '';
  }

  runs(id: number): boolean {
    return this.#current?.call.id === id;
  }

  /** Runs a call. No other may be running. */
  begin(call: Call, pieces: readonly Buffer[]): void {
    const ctx = new CallContext(call, pieces, this.#options.worker, (...ids) =>
      appLog(this.#channel, ...ids),
    );
    const beganAtMs = performance.now();
    this.#options.noteBegun(call.id);
    const { streamWindowBytes } = this.#options;
    const socket =
      call.format === 'websocket' ? new CallSocket(this.#channel, call.id, streamWindowBytes) : null;
    this.#current = { call, ctx, beganAtMs, stream: null, socket };
    this.#run(call, ctx);
  }

  /** Nobody waits for it any more. */
  cancel(reason: string): void {
    this.abort(reason);
    this.#current?.stream?.cancel();
    this.#current?.socket?.cancel();
  }

  /** Tells the app that the call should end. */
  abort(reason: string): void {
    this.#current?.ctx.abort(reason);
  }

  grantCredit(id: number, bytes: number): void {
    if (this.#current?.call.id === id) (this.#current.stream ?? this.#current.socket)?.grant(bytes);
  }

  /** A part of a message from the client of a WebSocket; one whose call has ended by now is nobody's. */
  takeData({ id, text, last }: DataPart, pieces: readonly Buffer[]): void {
    if (this.#current?.call.id !== id) return;
    this.#current.socket?.onData(pieces, totalBytes(pieces), text, last);
  }

  #run(call: Call, ctx: CallContext): void {
    try {
      const output = this.#options.prints.run(call.requestId, () => this.#handle(call, ctx));
      // A thenable of the app's own may call back twice; a promise settles once.
      if (isThenable(output)) Promise.resolve(output).then((value) => this.#deliver(value), this.#fail);
      else this.#deliver(output);
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #handle(call: Call, ctx: CallContext): unknown {
    const { app } = this.#options;
    const input = this.#current?.socket ?? readInput(call, ctx.body, app.wishes(call.route));
    if (isThenable(input)) return input.then((value) => app.handle(call.route, value, ctx));
    return app.handle(call.route, input, ctx);
  }

  #deliver(output: unknown): void {
    const { call, socket } = this.#current as Running;
    if (socket !== null) {
      this.#deliverSends(socket).catch(this.#fail);
      return;
    }
    try {
      if (output instanceof Error) {
        this.#fail(output);
        return;
      }
      if (isResponse(output)) {
        this.#deliverResponse(output).catch(this.#fail);
        return;
      }
      if (output instanceof Reply) {
        this.#deliverReply(output);
        return;
      }
      const iterator = iteratorOf(output);
      if (iterator !== null) {
        this.#deliverStream(iterator, null).catch(this.#fail);
        return;
      }
      const encoded = encodeOutput(output, call);
      if (encoded instanceof Promise) encoded.then((late) => this.#succeed(late), this.#fail);
      else this.#succeed(encoded);
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #deliverReply({ head, body }: Reply): void {
    const { call } = this.#current as Running;
    if (body.kind === 'stream') this.#deliverStream(body.iterator, head).catch(this.#fail);
    else if (body.kind === 'bytes') this.#succeed({ ...head, body: body.bytes });
    else this.#succeed({ ...writeJson(body.value, call), ...head });
  }

  async #deliverResponse(response: Response): Promise<void> {
    const head = responseHead(response);
    const body = await responseBody(response);
    if (body.kind === 'whole') this.#succeed({ ...head, body: body.body });
    else await this.#deliverStream(body.chunks, head);
  }

  async #deliverStream(
    iterator: Iterator<unknown> | AsyncIterator<unknown>,
    head: ReplyHead | null,
  ): Promise<void> {
    const running = this.#current as Running;
    const { call } = running;
    const stream = new StreamSender(this.#channel, call.id, this.#options.streamWindowBytes);
    running.stream = stream;
    if (running.ctx.aborted) stream.cancel();
    const { prints } = this.#options;
    await prints.run(call.requestId, () => sendStream(iterator, call.accept, head, stream));
    if (stream.cancelled) throw new ServeError('SERVE_CANCELLED');
    this.#channel.send({ type: 'end', id: call.id, runMs: this.#runMs() });
    this.#finish();
  }

  /** The function of a WebSocket route has returned: the connection ends with what it has sent. */
  async #deliverSends(socket: CallSocket): Promise<void> {
    await socket.flushed();
    if (socket.cancelled) throw new ServeError('SERVE_CANCELLED');
    this.#channel.send({ type: 'end', id: (this.#current as Running).call.id, runMs: this.#runMs() });
    this.#finish();
  }

  #succeed(output: EncodedOutput & Partial<ReplyHead>): void {
    const { call } = this.#current as Running;
    const { body, contentType, status = 200, headers = '' } = output;
    const { maxOutputBytes } = this.#options;
    if (body.length > maxOutputBytes) {
      const message = `The model's output is ${body.length} bytes; --max-output allows ${maxOutputBytes}.`;
      this.#fail(new ServeError('SERVE_OUTPUT_TOO_LARGE', message));
      return;
    }
    const { id } = call;
    const runMs = this.#runMs();
    this.#channel.sendBody(
      { type: 'result', id, status, contentType, headers, bodyBytes: body.length, runMs },
      id,
      [body],
      body.length,
    );
    this.#finish();
  }

  /** A Response that is thrown is the answer, as one that is returned, while there is none yet. */
  readonly #fail = (thrown: unknown): void => {
    const { call, stream, socket } = this.#current as Running;
    if (isResponse(thrown) && socket === null && stream?.begun !== true) {
      this.#deliverResponse(thrown).catch(this.#fail);
      return;
    }
    sendError(this.#channel, call.id, asServeError(thrown), this.#runMs());
    this.#finish();
  };

  #finish(): void {
    const runMs = this.#runMs();
    this.#current?.socket?.end();
    this.#current = null;
    this.#onEnded(runMs);
  }

  #runMs(): number {
    return performance.now() - (this.#current as Running).beganAtMs;
  }
}

/** An error that is not ours is the app's failure. */
function asServeError(thrown: unknown): ServeError {
  try {
    if (thrown instanceof ServeError) return thrown;
  } catch {
    // A Proxy may refuse even this; then it is none of ours.
  }
  return new ServeError('SERVE_INFERENCE_FAILED', undefined, { detail: describeThrown(thrown).stack });
}

/** The ending of a call that failed. */
export function sendError(channel: Channel, id: number, error: ServeError, runMs: number): void {
  const { code, message, detail } = error;
  channel.send({
    type: 'error',
    id,
    code,
    message: message.slice(0, MAX_TEXT_CHARS),
    detail: detail.slice(0, MAX_TEXT_CHARS),
    runMs,
  });
}
