/**
 * Opens the WebSockets that are calls of an app. Requests for any other protocol are answered as if they had not asked
 * for it.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import { ServeError } from '../../../protocol/errors.js';
import { asSentence } from '../../../protocol/text/sentences.js';
import { refuseRequest } from '../answer/own-answers.js';
import type { RequestContext } from '../request/request-context.js';
import type { NamedPlan } from '../call/call-plan.js';
import { hasBody } from '../socket/request-facts.js';
import { WebSocketCall } from './websocket-call.js';

export function isWebSocketPlan(act: object): act is NamedPlan {
  return 'format' in act && act.format === 'websocket';
}

/**
 * Returns a function that opens the WebSocket of a request, or refuses it. `mistake`: the error that the gate found, if any.
 */
export function webSocketOpener(maxMessageBytes: number) {
  const handshakes = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: maxMessageBytes,
    // Neither is bounded by number: the outbox counts the memory of both against `--queue-bytes`.
    maxFragments: 0,
    maxBufferedChunks: 0,
  });
  return (
    context: RequestContext,
    plan: NamedPlan,
    mistake: ServeError | null,
    socket: Socket,
    head: Buffer,
  ): void => {
    context.model = plan.target.model;
    try {
      const flawed = mistake ?? handshakeMistake(context.request);
      if (flawed !== null) throw flawed;
      const place = plan.target.model.dispatcher.admit(0);
      let isOpen = false;
      const flaw = acceptHandshake(handshakes, context, socket, head, (ws) => {
        isOpen = true;
        new WebSocketCall(context, plan, plan.target, ws, place);
      });
      if (!isOpen) place.release(); // it was refused, or the client has disconnected
      if (flaw !== null) throw flaw;
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      refuseUpgrade(context, socket, thrown);
    }
  };
}

/** Returns the error of an invalid handshake, with nothing sent yet; null if it is valid. */
function acceptHandshake(
  handshakes: WebSocketServer,
  context: RequestContext,
  socket: Socket,
  head: Buffer,
  onOpen: (ws: WebSocket) => void,
): ServeError | null {
  const addId = (lines: string[]): unknown => lines.push(`X-Request-Id: ${context.requestId}`);
  const onMistake = ({ message }: Error): void => {
    mistake = new ServeError(
      'SERVE_BAD_REQUEST',
      `This is not a WebSocket handshake: ${asSentence(message)}`,
    );
  };
  let mistake: ServeError | null = null;
  handshakes.on('headers', addId).on('wsClientError', onMistake);
  handshakes.handleUpgrade(context.request, socket, head, onOpen);
  handshakes.off('headers', addId).off('wsClientError', onMistake);
  return mistake;
}

/** Checks the handshake's version and key (RFC 6455 sections 4.1 and 4.4). */
function handshakeMistake({ headers }: IncomingMessage): ServeError | null {
  const version = headers['sec-websocket-version'];
  if (version !== '13') {
    const asked = version === undefined ? 'no version' : `version ${version}`;
    return new ServeError(
      'SERVE_UPGRADE_REQUIRED',
      `This server supports WebSocket version 13; the handshake asks for ${asked}.`,
    );
  }
  if (/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) return null;
  return new ServeError(
    'SERVE_BAD_REQUEST',
    'This is not a WebSocket handshake: its Sec-WebSocket-Key is not valid (RFC 6455).',
  );
}

/** Refuses the request like any other, on a connection that no HTTP parser reads any more. */
export function refuseUpgrade(context: RequestContext, socket: Socket, error: ServeError): void {
  const { response } = context;
  socket.on('error', () => {}); // it may disconnect first
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  refuseRequest(context, error, { close: true });
}

/**
 * Whether this is a WebSocket handshake (RFC 6455 section 4.1). HTTP/1.0 has no upgrades (RFC 9110 section 7.8), and no
 * frame could follow a body.
 */
export function asksForWebSocket(request: IncomingMessage): boolean {
  const { method, headers, httpVersion } = request;
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    !hasBody(request)
  );
}
