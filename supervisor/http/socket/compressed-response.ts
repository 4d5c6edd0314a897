/**
 * Responses that compress their bodies (`--compress`): those of calls, pages and errors. Without the
 * option no such response is created.
 *
 * 1. `writeHead` decides by status, type, length and `Accept-Encoding`, and changes the headers.
 * 2. What is written goes through zlib, which works in its threads, and comes back in pieces that are written to the
 *    client. Writers are held back by zlib, and zlib by the client.
 * 3. A stream, whose length is not known, is flushed after each write, so that no event waits for the next.
 */
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { constants, createBrotliCompress, createGzip, type BrotliCompress, type Gzip } from 'node:zlib';
import { hasBody } from './request-facts.js';
import { chooseCoding, isCompressible, type AnswerCoding } from './answer-coding.js';

/** From 0 to 11; Node's default of 11 is for files that are compressed once. */
const BROTLI_QUALITY = 4;

const CODED = Symbol('coded');

interface Coded {
  /** Calls back when zlib holds nothing of what was written. */
  [CODED]?: (callback: () => void) => void;
}

/**
 * Calls back when all that was written has been passed on to the connection: at once without compression, never if the
 * client does not read.
 */
export function onceCoded(response: ServerResponse, callback: () => void): void {
  const coded = response as Coded;
  if (coded[CODED] === undefined) callback();
  else coded[CODED](callback);
}

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];
type WriteHead = [status: number, phrase?: string | Headers, headers?: Headers];

/** Returns the class `Response` with compression. */
export function compressedResponses(Response: typeof ServerResponse): typeof ServerResponse {
  return class CompressedResponse<R extends IncomingMessage = IncomingMessage> extends Response<R> {
    #coder: Gzip | BrotliCompress | null = null;

    override writeHead(...args: unknown[]): this {
      const [status, ...rest] = args as WriteHead;
      const headers = rest.find((one) => typeof one === 'object' && !Array.isArray(one)) as
        OutgoingHttpHeaders | undefined;
      const answer = new AnswerHeaders(this, headers);
      // The rest of a body that is refused is read before the end of its answer: that must not wait in zlib.
      const isReadOn = !this.req.complete && hasBody(this.req);
      const canCompress = !this.headersSent && !isReadOn && isCompressible(status, answer.of);
      const coding = canCompress ? chooseCoding(this.req.headers['accept-encoding']) : null;
      const isStream = answer.of('content-length') === undefined;
      if (canCompress) answer.addVary();
      if (coding !== null) answer.encode(coding);
      try {
        super.writeHead(...(args as Parameters<ServerResponse['writeHead']>));
      } catch (invalid) {
        answer.restore();
        throw invalid;
      }
      if (coding !== null && this.req.method !== 'HEAD') this.#begin(coding, isStream);
      return this;
    }

    override write(...args: unknown[]): boolean {
      if (!this.headersSent) this.writeHead(this.statusCode);
      if (this.#coder !== null) return this.#coder.write(...(args as Parameters<Gzip['write']>));
      return super.write(...(args as Parameters<ServerResponse['write']>));
    }

    override end(...args: unknown[]): this {
      if (!this.headersSent) this.writeHead(this.statusCode);
      const coder = this.#coder;
      if (coder === null) {
        super.end(...(args as Parameters<ServerResponse['end']>));
        return this;
      }
      const callback = args.find((one) => typeof one === 'function') as (() => void) | undefined;
      if (callback !== undefined) this.once('finish', callback);
      const [chunk, encoding] = args.filter((one) => typeof one !== 'function');
      if (chunk === undefined || chunk === null) coder.end();
      else coder.end(chunk, encoding as BufferEncoding);
      return this;
    }

    /** The response drains when its client does; its writers wait for zlib. */
    override emit(event: string | symbol, ...args: unknown[]): boolean {
      if (event !== 'drain' || this.#coder === null) return super.emit(event, ...args);
      this.#coder.resume();
      return true;
    }

    static {
      // In Node's types it is a property, which no getter can override.
      Object.defineProperty(this.prototype, 'writableLength', {
        get(this: CompressedResponse): number {
          return Reflect.get(Response.prototype, 'writableLength', this) + this.#heldBytes();
        },
      });
    }

    /** Bytes that wait on the connection behind other answers, and in zlib. */
    get queuedBytes(): number {
      return this.socket === null ? this.writableLength : this.#heldBytes();
    }

    [CODED](callback: () => void): void {
      const coder = this.#coder;
      if (coder === null || coder.destroyed) {
        callback();
        return;
      }
      const onPassed = (): void => {
        if (coder.readableLength > 0) return;
        coder.off('data', onPassed);
        callback();
      };
      coder.flush(() => {
        coder.on('data', onPassed);
        onPassed();
      });
    }

    /** Bytes that zlib holds: at least one until its end. */
    #heldBytes(): number {
      const coder = this.#coder;
      if (coder === null || coder.readableEnded || coder.destroyed) return 0;
      return Math.max(1, coder.writableLength + coder.readableLength);
    }

    #begin(coding: AnswerCoding, isStream: boolean): void {
      const coder = createCoder(coding, isStream);
      this.#coder = coder;
      coder.on('data', (piece: Buffer) => {
        if (!super.write(piece)) coder.pause();
      });
      coder.on('drain', () => void super.emit('drain'));
      coder.on('end', () => void super.end());
      coder.on('error', () => this.destroy());
      this.once('close', () => coder.destroy());
      if (isStream) this.flushHeaders(); // a stream may fail before zlib returns anything
    }
  };
}

function createCoder(coding: AnswerCoding, isStream: boolean): Gzip | BrotliCompress {
  if (coding === 'gzip') return createGzip(isStream ? { flush: constants.Z_SYNC_FLUSH } : {});
  return createBrotliCompress({
    params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY },
    ...(isStream ? { flush: constants.BROTLI_OPERATION_FLUSH } : {}),
  });
}

/** The headers of an answer: those given with its status, over those that were set before. */
class AnswerHeaders {
  readonly #response: ServerResponse;
  readonly #given: OutgoingHttpHeaders;
  readonly #before = new Map<string, OutgoingHttpHeader | undefined>();

  constructor(response: ServerResponse, given: OutgoingHttpHeaders = {}) {
    this.#response = response;
    this.#given = given;
  }

  readonly of = (name: string): string | undefined => {
    const key = this.#keyOf(name);
    const value = key === undefined ? this.#response.getHeader(name) : this.#given[key];
    return value === undefined ? undefined : String(value);
  };

  /** Caches must keep the answers to clients of other codings apart. */
  addVary(): void {
    const before = this.of('vary');
    if (before === '*' || /\baccept-encoding\b/i.test(before ?? '')) return;
    this.#set('Vary', before === undefined ? 'Accept-Encoding' : `${before}, Accept-Encoding`);
  }

  encode(coding: AnswerCoding): void {
    this.#set('Content-Encoding', coding);
    this.#remove('content-length');
    this.#remove('accept-ranges');
    const etag = this.of('etag');
    if (etag?.startsWith('"') === true) this.#set('ETag', `W/${etag}`); // its bytes are not those that the app named
  }

  /** Undoes the changes to headers that were set before: the answer was not valid, and another takes its place. */
  restore(): void {
    for (const [name, value] of this.#before)
      if (value === undefined) this.#response.removeHeader(name);
      else this.#response.setHeader(name, value);
  }

  #set(name: string, value: string): void {
    this.#remove(name);
    this.#response.setHeader(name, value);
  }

  #remove(name: string): void {
    const key = this.#keyOf(name);
    if (key !== undefined) delete this.#given[key];
    if (!this.#before.has(name)) this.#before.set(name, this.#response.getHeader(name));
    this.#response.removeHeader(name);
  }

  #keyOf(name: string): string | undefined {
    return Object.keys(this.#given).find((key) => key.toLowerCase() === name.toLowerCase());
  }
}
