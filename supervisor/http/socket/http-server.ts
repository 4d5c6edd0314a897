/**
 * The HTTP server below Koa: node:http with limits that keep slow or hostile clients from harming others. Every valid
 * request goes to the handler of `handler.ts`.
 */
import {
  STATUS_CODES,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  type ServerOptions,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { ServeError, type ErrorCode } from '../../../protocol/errors.js';
import type { TlsPlan } from '../../options/tls.js';
import { awaitingContinue } from './receive-body.js';
import { discardRest, type Failure } from './refuse.js';
import { JoinedRequest } from './joined-request.js';
import { currentResponse } from './node-internals.js';
import { newRequestId } from '../../dispatch/call.js';
import type { ParserError, InputTurns } from './input-turns.js';
import { endingConnections, hasBody, lastRequests, onceAnswered } from './request-facts.js';
import { inputTurns } from './shared-turns.js';

/** Longer than the 60 s after which common load balancers drop idle connections, so that they close first. */
const KEEP_ALIVE_MS = 75_000;

/** Node looks for slow clients this often; its default of 30 s would make a 20 s limit mean up to 50 s. */
const CHECK_INTERVAL_MS = 1000;

/** The longest time for a whole request, headers and body. Pauses inside a body have a shorter limit (receive-body.ts). */
const REQUEST_MS = 30 * 60_000;

/** A client that sent a broken request has this long to read the answer; then its connection is cut. */
const BROKEN_GRACE_MS = 1000;

export interface HttpHandler {
  request(request: IncomingMessage, response: ServerResponse): void;
  /**
   * Handles a request for another protocol; its connection is no longer read as HTTP. Returns false to decline the
   * upgrade.
   */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): boolean;
  /** Describes an error for a client that sent no valid request. */
  fail(error: ServeError, requestId: string): Failure;
}

/**
 * Creates an HTTP server that does not listen yet, with responses of the class `Response`. Without `tls` it serves
 * plain HTTP.
 */
export function createHttpServer(
  headerTimeoutMs: number,
  late: LateHandler,
  Response: typeof ServerResponse,
  turns: InputTurns,
  tls: Pick<TlsPlan, 'cert' | 'key'> | null = null,
): Server {
  const options = optionsOf(headerTimeoutMs, Response);
  const server =
    tls === null
      ? createServer(options)
      : createTlsServer(options, tls, headerTimeoutMs, (socket) => refusePlainHttp(late, socket));
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    lastRequests.set(request.socket, request);
    turns.count(response);
    // Before Node's own listener, which would read what is left of a body without an end, unseen by `turns`.
    if (hasBody(request)) {
      response.prependListener('finish', () => {
        if (!request.complete) discardRest(request);
      });
    }
    late.request(request, response);
  };
  const arrival = tls === null ? 'connection' : 'secureConnection';
  server.on(arrival, (socket: Socket) => turns.watch(socket));
  server.on('request', onRequest);
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    awaitingContinue.set(request, response);
    onRequest(request, response);
  });
  server.on('checkExpectation', onRequest); // a server may ignore an expectation (RFC 9110 section 10.1.1)
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!upgrading.has(socket)) socket.on('error', () => {}); // it may disconnect before another listener is added
    upgrading.add(socket);
    late.use((handler) =>
      onceAnswered(socket, () => {
        if (endingConnections.has(request.socket) || handler.upgrade(request, socket, head)) return; // `socket` may be a wrapper
        readOnWithoutUpgrade(request, socket, head, () => server.emit(arrival, socket));
      }),
    );
  });
  server.on('connect', (_request, socket: Socket) =>
    refuseBroken(late, socket, 'SERVE_METHOD_NOT_ALLOWED', 'CONNECT'),
  );
  server.on('clientError', (error: ParserError, socket: Socket) => {
    if (socket.destroyed || turns.keepsRest(error, socket)) return;
    refuseBroken(late, socket, brokenRequestCode(error.code), brokenMethod(error));
  });
  return server;
}

function optionsOf(headerTimeoutMs: number, Response: typeof ServerResponse): object {
  return {
    IncomingMessage: JoinedRequest,
    ServerResponse: Response,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: headerTimeoutMs,
    requestTimeout: Math.max(REQUEST_MS, 2 * headerTimeoutMs),
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    requireHostHeader: false, // the handler refuses it, with an error body
    // From Node 24.9 on: only a request without a body leaves its parser when it asks for another protocol. One with a
    // body is answered like any other request (its upgrade is never accepted), but requests pipelined behind it are
    // lost.
    shouldUpgradeCallback: (request: IncomingMessage) => !hasBody(request),
  };
}

/**
 * Stands in for the real handler until that is loaded: the port opens first, the workers start next, and Koa, which
 * takes longer to load than a worker to start, comes last. Requests wait in order.
 */
export class LateHandler {
  #handler: HttpHandler | null = null;
  #waiting: ((handler: HttpHandler) => void)[] = [];

  request(request: IncomingMessage, response: ServerResponse): void {
    if (this.#handler === null) this.#waiting.push(() => this.request(request, response));
    else if (!request.socket.destroyed) this.#handler.request(request, response); // it would wait for a client that has disconnected
  }

  /** Calls back with the handler, at once if it is loaded. */
  use(callback: (handler: HttpHandler) => void): void {
    if (this.#handler !== null) callback(this.#handler);
    else this.#waiting.push(callback);
  }

  arrive(handler: HttpHandler): void {
    this.#handler = handler;
    for (const callback of this.#waiting.splice(0)) callback(handler);
  }
}

/** Connections on which another protocol was asked for. */
const upgrading = new WeakSet<Socket>();

/**
 * Input of a connection that waits behind its declined upgrade. Each time a connection is read on, Node reads a piece more,
 * so one that sends nothing but upgrades would fill the memory: beyond this it is cut.
 */
const MAX_WAITING_BYTES = 256 * 1024;

/**
 * Declines an upgrade, as a server may (RFC 9110 section 7.8): the request is put back without its `Upgrade` header, before
 * `head`, the input behind it. Node's parser has left the connection: `onReady` gives it a new one, in its turn, because one
 * read holds hundreds of such requests, and each would be handled before the first other client.
 */
function readOnWithoutUpgrade(
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
  onReady: () => void,
): void {
  void inputTurns.own().then(() => {
    if (head.length + socket.readableLength > MAX_WAITING_BYTES) socket.destroy();
    if (socket.destroyed) return;
    socket.setTimeout(0); // Node had set the limit of a connection without a request
    if (head.length > 0) socket.unshift(head);
    socket.unshift(headWithoutUpgrade(request));
    onReady();
  });
}

function headWithoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** Returns the method of the request in which the parser stopped; undefined if it does not begin in this piece of input. */
function brokenMethod({ rawPacket, bytesParsed = 0 }: ParserError): string | undefined {
  if (rawPacket === undefined) return undefined;
  const lineEnd = rawPacket.indexOf('\n', bytesParsed);
  return lastMethodIn(lineEnd < 0 ? rawPacket : rawPacket.subarray(0, lineEnd));
}

/** Returns the method of the last request that begins in this input; undefined if there is none. */
function lastMethodIn(input: Buffer): string | undefined {
  return input
    .toString('latin1')
    .match(/^[A-Z]+(?= \S+ HTTP\/1\.[01]\r?$)/gm)
    ?.at(-1);
}

/** Connections on which a broken request was received. Node reports the end of its input again. */
const broken = new WeakSet<Socket>();

/** Refuses a broken request, after the answers to the requests before it, and ends the connection. */
function refuseBroken(late: LateHandler, socket: Socket, code: ErrorCode, method: string | undefined): void {
  if (broken.has(socket)) return;
  broken.add(socket);
  discardInput(socket);
  socket.on('error', () => {}); // it may hang up first
  onceAnswered(socket, () => {
    const partial = currentResponse(socket); // the response to a request whose body broke off
    // It may be refused already: a second answer would look like a part of the first. After `Connection: close` Node
    // has ended the connection itself, and still sends the rest of the last answer.
    if (partial?.headersSent === true) partial.end(() => socket.destroySoon());
    else if (socket.writable)
      late.use((handler) =>
        answerByHand(handler, socket, new ServeError(code), partial?.req.method ?? method),
      );
  });
}

/** Takes the connection from its parser, which would report each further piece, at some cost. The input is thrown away. */
function discardInput(socket: Socket): void {
  socket
    .on('data', () => {}) // Node then passes the input through the stream
    .removeAllListeners('data')
    .resume();
}

/** Answers a client that sent plain HTTP to a TLS port, in plain HTTP: it understands no other answer. */
function refusePlainHttp(late: LateHandler, socket: Socket): void {
  socket.on('error', () => {}); // it may hang up first
  const error = new ServeError(
    'SERVE_BAD_REQUEST',
    'This port uses TLS: use an address that begins with https://.',
  );
  socket.once('data', (piece: Buffer) =>
    late.use((handler) => answerByHand(handler, socket, error, lastMethodIn(piece))),
  );
  socket.resume(); // the rest of its input is discarded
}

/** The `Allow` header for a refused CONNECT: no path takes more methods. */
const ALL_METHODS = 'GET, HEAD, POST, OPTIONS';

function answerByHand(
  handler: HttpHandler,
  socket: Socket,
  error: ServeError,
  method: string | undefined,
): void {
  const requestId = newRequestId();
  const { status, phrase, headers, body } = handler.fail(error, requestId);
  const lines = [
    `HTTP/1.1 ${status} ${phrase ?? STATUS_CODES[status] ?? ''}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${body.length}`,
    `X-Request-Id: ${requestId}`,
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  ];
  if (error.code === 'SERVE_METHOD_NOT_ALLOWED') lines.push(`Allow: ${ALL_METHODS}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
  socket.end(method === 'HEAD' ? head : Buffer.concat([head, body]));
  setTimeout(() => socket.destroy(), BROKEN_GRACE_MS).unref();
}

function brokenRequestCode(code: string | undefined): ErrorCode {
  // The latter: `InputTurns` refused it, because it has too many fields.
  if (code === 'HPE_HEADER_OVERFLOW' || code === 'HPE_CB_HEADERS_COMPLETE') return 'SERVE_HEADERS_TOO_LARGE';
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'SERVE_REQUEST_TIMEOUT' : 'SERVE_BAD_REQUEST';
}

/** Only ciphers with forward secrecy and authentication; the first three are those of TLS 1.3. */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
];

/**
 * The HTTP server behind TLS: node:https with the protocols and ciphers that are safe today, and an answer for clients
 * that send plain HTTP. The sockets after the handshake are Node's TLS sockets, and `node-internals.ts` finds the TCP sockets
 * below them. `handshakeMs`: the longest handshake. `onPlain`: called with a connection whose client sent plain HTTP, still unread.
 */
function createTlsServer(
  options: ServerOptions,
  { cert, key }: Pick<TlsPlan, 'cert' | 'key'>,
  handshakeMs: number,
  onPlain: (socket: Socket) => void,
): Server {
  const tls = {
    cert,
    key,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS.join(':'),
    handshakeTimeout: handshakeMs,
  } as const;
  const server = createHttpsServer({ ...options, ...tls });
  const [beginHandshake] = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) =>
    onFirstBytes(socket, handshakeMs, (isHttp) => {
      if (isHttp) onPlain(socket);
      else beginHandshake?.call(server, socket);
    }),
  );
  // Node would report a broken request, but this client cannot read an answer.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

/**
 * Calls back when the first bytes of a connection are there, and leaves them unread; ends the connection if none come
 * within `limitMs`.
 */
function onFirstBytes(socket: Socket, limitMs: number, callback: (isHttp: boolean) => void): void {
  const leave = (): void => void socket.destroy(); // it may disconnect before another listener is added
  socket.on('error', leave).on('end', leave).on('timeout', leave).setTimeout(limitMs);
  socket.once('data', (piece: Buffer) => {
    socket.pause();
    socket.off('end', leave).off('timeout', leave).setTimeout(0);
    socket.unshift(piece);
    callback(isLetter(piece[0] ?? 0));
    socket.off('error', leave);
  });
}

/** Every HTTP method begins with a capital letter, and no TLS record does. */
function isLetter(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}
