/** Requests that ask for another protocol: WebSockets to the app's routes for them; all others are requests like any. */
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import { ServeError } from '../../protocol/errors.js';
import type { Admission } from '../dispatch/arrivals.js';
import type { Cors } from './cors.js';
import type { Front } from './front.js';
import { gateMistake } from './gate.js';
import { refuse } from './refuse.js';
import { pathOf } from './request-facts.js';
import { requestIdOf } from './request-id.js';
import { WebSocketCall, isWebSocketRoute } from './websocket-call.js';

/** Returns false if it is not for this: the request is to be answered as if it had not asked. */
export type TakeUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => boolean;

/** `cors`: browsers do not ask it before they open a WebSocket, so it is asked here; null if every page may. */
export function createTakeUpgrade(front: Front, cors: Cors | null): TakeUpgrade {
  const handshakes = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: front.options.maxBody,
  });
  return (request, socket, head) => {
    if (!asksForWebSocket(request) || !mayBeRoute(front, pathOf(request.url))) return false;
    open(front, cors, handshakes, request, socket, head);
    return true;
  };
}

function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/** Before the app is loaded every path may be one but the server's own. */
function mayBeRoute({ model, ownPaths }: Front, path: string): boolean {
  return model.routes === null ? !ownPaths.has(path) : isWebSocketRoute(model.routes.get(path));
}

function open(
  front: Front,
  cors: Cors | null,
  handshakes: WebSocketServer,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
): void {
  const requestId = requestIdOf(request.headers);
  let admission: Admission;
  try {
    const mistake = gateMistake(front, request) ?? originMistake(cors, request) ?? handshakeMistake(request);
    if (mistake !== null) throw mistake;
    admission = front.model.dispatcher.admit(0, null);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    refuseUpgrade(request, socket, requestId, thrown);
    front.onRefused(request, requestId, thrown);
    return;
  }
  const name = (lines: string[]): unknown => lines.push(`X-Request-Id: ${requestId}`);
  handshakes.on('headers', name);
  let isOpen = false;
  handshakes.handleUpgrade(request, socket, head, (ws) => {
    isOpen = true;
    new WebSocketCall(front, request, ws, requestId).submit(admission);
  });
  handshakes.off('headers', name);
  if (!isOpen) admission.release(); // a handshake with a mistake in it, and answered so
}

function originMistake(cors: Cors | null, request: IncomingMessage): ServeError | null {
  return cors === null || cors.allows(request) ? null : new ServeError('SERVE_ORIGIN_REFUSED');
}

/** RFC 6455 section 4.1. */
function handshakeMistake({ headers }: IncomingMessage): ServeError | null {
  const isRight =
    headers['sec-websocket-version'] === '13' &&
    /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '');
  if (isRight) return null;
  return new ServeError('SERVE_BAD_REQUEST', 'This is no WebSocket handshake of version 13 (RFC 6455).');
}

/** As any other request is refused, on a connection that no HTTP parser reads any more. */
function refuseUpgrade(request: IncomingMessage, socket: Socket, requestId: string, error: ServeError): void {
  socket.on('error', () => {}); // it may hang up first
  const response = new ServerResponse(request);
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  refuse(request, response, error, { requestId, close: true });
}
