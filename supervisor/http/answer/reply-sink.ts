/** Writes a call's answer to its HTTP client: status, headers and bytes, as they arrive. */
import { splitHeaderLines } from '../../../protocol/text/headers.js';
import { ServeError, asCallers } from '../../../protocol/errors.js';
import type { ReplyHead } from '../../../protocol/wire/messages.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import type { Dispatcher } from '../../dispatch/dispatcher.js';
import { callFacts, type Call, type Sink } from '../../dispatch/call.js';
import { isLastRequest, onceClosed } from '../socket/request-facts.js';
import { onceCut } from '../socket/unsent-answers.js';
import { answerError } from './own-answers.js';
import type { RequestContext } from '../request/request-context.js';

export class ReplySink implements Sink {
  readonly #context: RequestContext;
  readonly #dispatcher: Pick<Dispatcher, 'giveUp'>;
  /** Callbacks of the chunks that wait until the connection drains. */
  #untaken: (() => void)[] = [];
  #watchesCut = false;

  constructor(context: RequestContext, dispatcher: Pick<Dispatcher, 'giveUp'>) {
    this.#context = context;
    this.#dispatcher = dispatcher;
  }

  reply(call: Call, head: ReplyHead, pieces: Buffer[], bodyBytes: number, release: () => void): void {
    if (head.status === RESET_CONTENT && bodyBytes > 0) {
      this.reply(call, head, [], 0, release);
      return;
    }
    const headers = this.#headers(head);
    if (!BODILESS.has(head.status)) headers['Content-Length'] = bodyBytes;
    headers['Server-Timing'] = serverTiming(call.queueMs(performance.now()), call.runMs);
    const invalid = this.#writeHead(call, head, headers);
    if (invalid !== null) {
      this.fail(call, invalid);
      return;
    }
    this.#end(pieces, bodyBytes, release);
    this.#settleOnceOut(call);
  }

  #end(pieces: readonly Buffer[], bodyBytes: number, release: () => void): void {
    const { request, response } = this.#context;
    const [first] = pieces;
    if (pieces.length > 1) {
      response.cork(); // the pieces are sent in one gathered write
      for (const piece of pieces) response.write(piece);
      response.end();
      response.uncork();
    } else if (first === undefined) {
      response.end();
    } else if (bodyBytes < ONE_WRITE_BYTES) {
      // Given to `end`, the text would be sent as a gathered write with an empty second part: 10% of the front's CPU per call.
      response.cork();
      response.write(first.toString('latin1'), 'latin1'); // one character for each byte
      response.uncork();
      response.end();
    } else {
      response.end(first, () => {
        if (!request.socket.destroyed) release(); // the kernel has the bytes; if cut off, the buffer is left to the GC
      });
    }
  }

  head(call: Call, head: ReplyHead): void {
    const headers = this.#headers(head);
    if (head.status === RESET_CONTENT) headers['Content-Length'] = 0;
    const invalid = this.#writeHead(call, head, headers);
    if (invalid !== null) this.#dispatcher.giveUp(call, invalid, invalid.message); // no chunk may follow
  }

  chunk(call: Call, pieces: Buffer[], taken: () => void): void {
    const { response } = this.#context;
    if (response.statusCode === RESET_CONTENT) {
      taken();
      return;
    }
    let room = true;
    for (const piece of pieces) room = response.write(piece);
    if (room || response.destroyed) {
      taken();
      return;
    }
    this.#untaken.push(taken);
    if (this.#untaken.length > 1) return; // waits for `drain` already
    response.once('drain', () => this.#onDrain());
    if (this.#watchesCut) return;
    this.#watchesCut = true;
    onceCut(response, (error) => this.#dispatcher.giveUp(call, error, 'the client stopped reading'));
  }

  #onDrain(): void {
    const untaken = this.#untaken;
    this.#untaken = [];
    for (const taken of untaken) taken();
  }

  end(call: Call): void {
    this.#context.response.end();
    this.#settleOnceOut(call);
  }

  /** Reports the outcome once it is known: at once if the kernel has taken the answer, as usual; else when it is sent or cut. */
  #settleOnceOut(call: Call): void {
    const context = this.#context;
    const { backend, request, response } = context;
    const status = response.statusCode;
    if (response.writableLength === 0) {
      backend.observer.settled(context, call, status, null);
      return;
    }
    let outcome: ServeError | null = new ServeError('SERVE_CANCELLED');
    let isSettled = false;
    onceCut(response, (error) => (outcome = error));
    response.once('finish', () => {
      if (!request.socket.destroyed) outcome = null;
    });
    onceClosed(request, response, () => {
      if (!isSettled) backend.observer.settled(context, call, status, outcome);
      isSettled = true;
    });
  }

  fail(call: Call, error: ServeError): void {
    const context = this.#context;
    const { backend, response } = context;
    let status = response.statusCode;
    if (error.code === 'SERVE_CANCELLED' || error.code === 'SERVE_SLOW_READER') response.destroy();
    else
      status = answerError(context, asCallers(error, call.hasBegun), {
        timing: serverTiming(call.queueMs(performance.now()), call.runMs),
      });
    backend.observer.settled(context, call, status, error);
  }

  #headers({ status, contentType, headers: lines }: ReplyHead): Record<string, string | number | string[]> {
    const { backend, request, response, dialect } = this.#context;
    // No prototype: an app may send a header named `constructor`.
    const headers = Object.create(null) as Record<string, string | number | string[]>;
    if (contentType !== '' && !BODILESS.has(status)) headers['Content-Type'] = contentType;
    if (lines !== '') {
      for (const [name, value] of splitHeaderLines(lines)) {
        const lower = name.toLowerCase();
        if (OWN_HEADERS.has(lower) || dialect.ownHeaders?.has(lower) === true) continue;
        // The app's Vary is added to the front's own.
        const before = headers[name] ?? (lower === 'vary' ? response.getHeader(name) : undefined);
        headers[name] = before === undefined ? value : [before, value].flat().map(String);
      }
    }
    headers['X-Request-Id'] = this.#context.requestId;
    if (dialect.headers !== undefined) Object.assign(headers, dialect.headers(this.#context));
    const isLast = backend.end.isNear && isLastRequest(request);
    if (isLast || dialect.closes?.(status) === true) headers['Connection'] = 'close';
    return headers;
  }

  /**
   * Writes status and headers. Returns an error if the app's headers are not valid HTTP, else null. It is logged, because not
   * every dialect reports the reason to the client.
   */
  #writeHead(
    { message }: Call,
    { status, phrase }: ReplyHead,
    headers: Record<string, string | number | string[]>,
  ): ServeError | null {
    try {
      if (phrase === '') this.#context.response.writeHead(status, headers);
      else this.#context.response.writeHead(status, phrase, headers);
      return null;
    } catch (cause) {
      // If the response has headers already, Node sets the new ones one by one: remove those before the invalid one.
      for (const name of Object.keys(headers)) this.#context.response.removeHeader(name);
      const reason = cause instanceof Error ? cause.message : 'it cannot be sent';
      const text = `The model's response header is invalid: ${asSentence(reason)}`;
      const error = new ServeError('SERVE_OUTPUT_INVALID', text, { kind: 'exception' });
      const { model } = message;
      const facts = { model, ...callFacts(message), status: message.statusOf(error), code: error.code };
      this.#context.backend.log.error(facts, error.message);
      return error;
    }
  }
}

/** Formats the Server-Timing header: `queue;dur=1.20, run;dur=3.40`, in ms. */
export function serverTiming(queueMs: number, runMs: number): string {
  return `queue;dur=${twoDecimals(queueMs)}, run;dur=${twoDecimals(runMs)}`;
}

/** Writes ms with two decimals, 0 without. Built from integers, whose strings V8 caches: `toFixed` takes several times as long. */
function twoDecimals(ms: number): string {
  if (ms === 0) return '0';
  const hundredths = Math.round(ms * 100);
  const rest = hundredths % 100;
  return `${(hundredths - rest) / 100}.${rest < 10 ? '0' : ''}${rest}`;
}

/** Node sends headers and a text below this size in one write; bytes would need a gathered write, 3 us more. */
const ONE_WRITE_BYTES = 4 * 1024;

/** Headers that an app cannot set: they belong to the connection, or callers rely on the front's values. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'content-type',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
]);

/** It has no body and a Content-Length of 0 (RFC 9110 section 15.3.6). */
const RESET_CONTENT = 205;

/** Node itself omits the body of these. */
const BODILESS: ReadonlySet<number> = new Set([204, 304]);
