/** Takes requests for a WebSocket of the app. Requests for any other protocol are answered as if they had not asked. */
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import { ServeError } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/sentences.js';
import type { Cors } from '../call/cors.js';
import type { Backend } from '../call/backend.js';
import { gateMistake } from '../dialects/gate.js';
import { refuse } from '../socket/refuse.js';
import { hasBody, namedPath, writtenPath } from '../socket/request-facts.js';
import { requestIdOf } from '../socket/request-id.js';
import { WebSocketCall, isWebSocketRoute } from './websocket-call.js';

export class Upgrades {
  readonly #backend: Backend;
  readonly #cors: Cors | null;
  readonly #handshakes: WebSocketServer;

  /** `cors`: browsers do not ask it before they open a WebSocket, so it is asked here; null if every page may. */
  constructor(backend: Backend, cors: Cors | null) {
    this.#backend = backend;
    this.#cors = cors;
    this.#handshakes = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: backend.options.maxBody,
    });
  }

  /** Returns false if it is not for this: the request is to be answered as if it had not asked. */
  take(request: IncomingMessage, socket: Socket, head: Buffer): boolean {
    const path = namedPath(writtenPath(request.url));
    if (path === null || !asksForWebSocket(request) || !this.#mayBeRoute(path)) return false;
    const requestId = requestIdOf(request.headers);
    try {
      this.#check(request, path);
      const place = this.#backend.model.dispatcher.admit(0);
      let isOpen = false;
      const mistake = this.#shakeHands(request, requestId, socket, head, (ws) => {
        isOpen = true;
        new WebSocketCall(this.#backend, request, path, ws, requestId).submit(place);
      });
      if (!isOpen) place.release(); // it was refused, or the client has hung up
      if (mistake !== null) throw mistake;
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      refuseUpgrade(request, socket, requestId, thrown);
      this.#backend.onRefused(request, requestId, thrown);
    }
    return true;
  }

  /** Whether the path may be a WebSocket: before the app is loaded, any path but the server's own. */
  #mayBeRoute(path: string): boolean {
    const { model, ownPaths } = this.#backend;
    return model.routes === null ? !ownPaths.has(path) : isWebSocketRoute(model.routes.get(path));
  }

  /** @throws SERVE_UNAUTHORIZED, SERVE_ORIGIN_REFUSED, SERVE_UPGRADE_REQUIRED, SERVE_BAD_REQUEST */
  #check(request: IncomingMessage, path: string): void {
    const mistake =
      gateMistake(this.#backend, request, path) ??
      originMistake(this.#cors, request) ??
      handshakeMistake(request);
    if (mistake !== null) throw mistake;
  }

  /** Returns what is wrong with the handshake, with nothing answered; null if nothing is. */
  #shakeHands(
    request: IncomingMessage,
    requestId: string,
    socket: Socket,
    head: Buffer,
    onOpen: (ws: WebSocket) => void,
  ): ServeError | null {
    const addId = (lines: string[]): unknown => lines.push(`X-Request-Id: ${requestId}`);
    const onMistake = ({ message }: Error): void => {
      mistake = new ServeError('SERVE_BAD_REQUEST', `This is no WebSocket handshake: ${asSentence(message)}`);
    };
    let mistake: ServeError | null = null;
    this.#handshakes.on('headers', addId).on('wsClientError', onMistake);
    this.#handshakes.handleUpgrade(request, socket, head, onOpen);
    this.#handshakes.off('headers', addId).off('wsClientError', onMistake);
    return mistake;
  }
}

function originMistake(cors: Cors | null, request: IncomingMessage): ServeError | null {
  return cors === null || cors.allows(request) ? null : new ServeError('SERVE_ORIGIN_REFUSED');
}

/** RFC 6455 sections 4.1 and 4.4. */
function handshakeMistake({ headers }: IncomingMessage): ServeError | null {
  const version = headers['sec-websocket-version'];
  if (version !== '13') {
    const asked = version === undefined ? 'no version' : `version ${version}`;
    return new ServeError(
      'SERVE_UPGRADE_REQUIRED',
      `WebSockets here are of version 13, and the handshake names ${asked}.`,
    );
  }
  if (/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) return null;
  return new ServeError(
    'SERVE_BAD_REQUEST',
    'This is no WebSocket handshake: its Sec-WebSocket-Key is none (RFC 6455).',
  );
}

/** Refuses as any other request is refused, on a connection that no HTTP parser reads any more. */
function refuseUpgrade(request: IncomingMessage, socket: Socket, requestId: string, error: ServeError): void {
  socket.on('error', () => {}); // it may hang up first
  const response = new ServerResponse(request);
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  refuse(request, response, error, { requestId, close: true });
}

/** RFC 6455 section 4.1. HTTP/1.0 knows no upgrades (RFC 9110 section 7.8), and no frame could follow a body. */
function asksForWebSocket(request: IncomingMessage): boolean {
  const { method, headers, httpVersion } = request;
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    !hasBody(request)
  );
}
