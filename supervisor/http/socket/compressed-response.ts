/**
 * Responses that compress their bodies (`--compress`): those of calls, pages and errors. Without the
 * option no such response is created.
 *
 * 1. `writeHead` decides by status, type, length and `Accept-Encoding`, and changes the headers.
 * 2. What is written goes through zlib, which works in its threads, and comes back in pieces that are written to the
 *    client. Writers are held back by zlib, and zlib by the client.
 * 3. A stream, whose length is not known, is flushed after each write, so that no event waits for the next.
 */
import { ServerResponse, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { constants, createBrotliCompress, createGzip, type BrotliCompress, type Gzip } from 'node:zlib';
import { hasBody } from './request-facts.js';
import { WatchedResponse } from './unsent-answers.js';

/** From 0 to 11; Node's default of 11 is for files that are compressed once. */
const BROTLI_QUALITY = 4;

/**
 * Calls back when all that was written has been passed on to the connection: at once without compression, never if the
 * client does not read.
 */
export function onceCoded(response: ServerResponse, callback: () => void): void {
  if (response instanceof CompressedResponse) response.onceCoded(callback);
  else callback();
}

export class CompressedResponse<R extends IncomingMessage = IncomingMessage> extends WatchedResponse<R> {
  #coder: Gzip | BrotliCompress | null = null;

  override writeHead(...args: unknown[]): this {
    const [status, ...rest] = args as [number, ...unknown[]];
    const given = rest.find((one) => typeof one === 'object') as OutgoingHttpHeaders | undefined;
    const before = this.getHeaders();
    const headers = { ...before, ...lowerCased(given) };
    // The rest of a body that is refused is read before the end of its answer: that must not wait in zlib.
    const isReadOn = !this.req.complete && hasBody(this.req);
    if (this.headersSent || isReadOn || !isCompressible(status, headers))
      return super.writeHead(...(args as Parameters<ServerResponse['writeHead']>));
    const coding = chooseCoding(this.req.headers['accept-encoding']);
    try {
      for (const [name, value] of Object.entries(given ?? {})) this.setHeader(name, value as string);
      addVary(this);
      if (coding !== null) describeCoding(this, coding);
      super.writeHead(status, rest.find((one) => typeof one === 'string') as string);
    } catch (invalid) {
      // The answer that takes its place has none of its headers.
      for (const name of this.getHeaderNames()) this.removeHeader(name);
      for (const [name, value] of Object.entries(before)) this.setHeader(name, value as string);
      throw invalid;
    }
    if (coding !== null && this.req.method !== 'HEAD')
      this.#begin(coding, headers['content-length'] === undefined);
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
        return Reflect.get(ServerResponse.prototype, 'writableLength', this) + this.#heldBytes();
      },
    });
  }

  /** Bytes that wait on the connection behind other answers, and in zlib. */
  override get queuedBytes(): number {
    return this.socket === null ? this.writableLength : this.#heldBytes();
  }

  /** Calls back when zlib holds nothing of what was written. */
  onceCoded(callback: () => void): void {
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

  #begin(coding: string, isStream: boolean): void {
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
}

function createCoder(coding: string, isStream: boolean): Gzip | BrotliCompress {
  if (coding === 'gzip') return createGzip(isStream ? { flush: constants.Z_SYNC_FLUSH } : {});
  return createBrotliCompress({
    params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY },
    ...(isStream ? { flush: constants.BROTLI_OPERATION_FLUSH } : {}),
  });
}

/** Caches must keep the answers to clients of other codings apart. */
function addVary(response: ServerResponse): void {
  const before = response.getHeader('vary');
  if (before === undefined) response.setHeader('Vary', 'Accept-Encoding');
  else if (before !== '*' && !/\baccept-encoding\b/i.test(String(before)))
    response.setHeader('Vary', `${String(before)}, Accept-Encoding`);
}

function describeCoding(response: ServerResponse, coding: string): void {
  response.setHeader('Content-Encoding', coding);
  response.removeHeader('Content-Length');
  response.removeHeader('Accept-Ranges');
  const etag = String(response.getHeader('etag'));
  if (etag.startsWith('"')) response.setHeader('ETag', `W/${etag}`); // its bytes are not those that the app named
}

function lowerCased(headers: OutgoingHttpHeaders = {}): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Smaller answers fit into one packet as they are. */
const MIN_COMPRESSED_BYTES = 1024;

/** Text, JSON and XML, also as the suffix of another type. */
const COMPRESSIBLE = /^(?:text\/[^;]+|application\/(?:json|xml|x-ndjson)|[^;]+\+(?:json|xml))\s*(?:;|$)/i;

/** Statuses whose answer has no body, or a part of one. */
const NOT_WHOLE: ReadonlySet<number> = new Set([204, 205, 206, 304]);

/** Headers that describe the bytes of the answer as they are sent, which the server cannot correct. */
const DESCRIBING_BYTES = [
  'content-encoding',
  'content-range',
  'digest',
  'repr-digest',
  'content-digest',
  'content-md5',
];

/** Whether an answer with this status and these headers, by names in lower case, may be sent compressed. */
export function isCompressible(status: number, headers: OutgoingHttpHeaders): boolean {
  const { 'content-type': type, 'content-length': length, 'cache-control': caching } = headers;
  return (
    !NOT_WHOLE.has(status) &&
    COMPRESSIBLE.test(String(type)) &&
    DESCRIBING_BYTES.every((name) => headers[name] === undefined) &&
    !/\bno-transform\b/i.test(String(caching)) &&
    (length === undefined || Number(length) >= MIN_COMPRESSED_BYTES)
  );
}

/** Returns the coding that a client with this `Accept-Encoding` likes best, brotli if both; null if it accepts neither, or prefers none. */
export function chooseCoding(accepted: string | undefined): 'br' | 'gzip' | null {
  if (accepted === undefined) return null;
  const weights = weightsOf(accepted);
  const weightOf = (coding: string): number => weights.get(coding) ?? weights.get('*') ?? 0;
  const best = weightOf('gzip') > weightOf('br') ? 'gzip' : 'br';
  if (weightOf(best) === 0) return null;
  return weightOf(best) >= (weights.get('identity') ?? 0) ? best : null;
}

/** Returns codings in lower case with their weights, 0 to 1. */
function weightsOf(accepted: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const item of accepted.split(',')) {
    const [name = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase());
    const weight = Number(params.find((param) => param.startsWith('q='))?.slice(2) ?? 1);
    weights.set(name === 'x-gzip' ? 'gzip' : name, weight >= 0 && weight <= 1 ? weight : 0);
  }
  return weights;
}
