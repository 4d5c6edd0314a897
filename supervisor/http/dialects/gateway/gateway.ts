/**
 * The gateway dialect: what the platform's API was to Banana's clients of majors 2 to 4. A call is started, then
 * asked for until it has ended.
 *
 * 1. A start has a place in the queue before its body is read, as every call has; a check and feedback need none.
 * 2. The body's control fields are found, the key among them; the model's input stays bytes.
 * 3. A start becomes a kept job of the app's route `/`, whether its client stays or not. Whoever waits for the
 *    result, in the start itself or in a check, is told when the job ends, or after a time that it still runs.
 *
 * Every reply is HTTP 200, failures too (reply.ts).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { joinPieces } from '../../../../protocol/body-assembler.js';
import { ServeError } from '../../../../protocol/errors.js';
import type { Admission } from '../../../dispatch/arrivals.js';
import type { Log } from '../../../observe/log.js';
import { keyOf } from '../../call/api-keys.js';
import type { Backend } from '../../call/backend.js';
import { checkCall, startCall } from './calls.js';
import { readEnvelope, type GatewayEnvelope } from './envelope.js';
import { answer, turnAway, type Exchange } from './exchange.js';
import { GATEWAY_PATHS, type GatewayOperation } from '../own-paths.js';
import { plainReply } from './reply.js';
import { announcedBytes } from '../../socket/read-body.js';
import { requestIdOf } from '../../socket/request-id.js';
import { takeBody, type BodyOwner, type ExpectedBody } from '../../call/take-body.js';

/** Of a request that starts nothing: ids and a few words. They are taken without a place in the queue. */
const MAX_WORDS_BYTES = 64 * 1024;

/** Of feedback, in the log. */
const MAX_LOGGED_BYTES = 2048;

/** What a request asks of the gateway; null if it is somebody else's. A route that the app has itself is the app's. */
export function gatewayOperation(
  backend: Backend,
  { method }: IncomingMessage,
  path: string,
): GatewayOperation | null {
  if (method !== 'POST') return null;
  const operation = GATEWAY_PATHS.get(path);
  return operation === undefined || backend.model.routes?.has(path) === true ? null : operation;
}

/** Takes what is the gateway's; returns false for everything else. Checks the API key itself: it is in the body. */
export function takeGateway(
  backend: Backend,
  log: Log,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): boolean {
  const operation = gatewayOperation(backend, request, path);
  if (operation === null) return false;
  takeBody(backend, request, response, new GatewayRequest(backend, log, request, response, operation));
  return true;
}

class GatewayRequest implements BodyOwner {
  readonly #exchange: Exchange;
  readonly #log: Log;
  readonly #operation: GatewayOperation;
  /** Whose key is in the body is a stranger until that is read. */
  readonly #isKnown: boolean;

  constructor(
    backend: Backend,
    log: Log,
    request: IncomingMessage,
    response: ServerResponse,
    operation: GatewayOperation,
  ) {
    const requestId = requestIdOf(request.headers);
    this.#exchange = { backend, request, response, requestId, acceptedAtMs: performance.now() };
    this.#log = log;
    this.#operation = operation;
    this.#isKnown = backend.keys.allows(keyOf(request.headers));
  }

  admit(): ExpectedBody {
    const { backend, request } = this.#exchange;
    const { maxBody } = backend.options;
    const startsCall = this.#operation.is === 'start';
    const maxBodyBytes = startsCall ? maxBody : Math.min(maxBody, MAX_WORDS_BYTES);
    const announced = announcedBytes(request, maxBodyBytes);
    let place = NO_PLACE;
    if (startsCall)
      place = this.#isKnown
        ? backend.model.dispatcher.admit(announced, null)
        : admitUnauthenticated(backend, announced);
    return { place, announcedBytes: announced, maxBodyBytes };
  }

  onWhole(pieces: Buffer[], bytes: number, place: Admission): void {
    const exchange = this.#exchange;
    const envelope = readEnvelope(joinPieces(pieces)); // one piece, unless it came chunked or is small
    exchange.requestId = requestIdOf(exchange.request.headers, envelope.id);
    this.#checkKey(envelope);
    if (this.#operation.is === 'start') {
      if (!this.#isKnown) this.#comeIn(place, bytes);
      startCall(exchange, place, envelope, bytes, this.#operation.waits);
    } else if (this.#operation.is === 'check') checkCall(exchange, envelope);
    else takeFeedback(exchange, this.#log, envelope);
  }

  turnAway(error: ServeError): void {
    turnAway(this.#exchange, error);
  }

  /** A job that was started goes on, and who waits for it looks by itself. */
  onClosed(): void {}

  /** A stranger who showed a key: is there a place in the queue? The job comes to it at once. @throws as `admit` does */
  #comeIn(place: Admission, bytes: number): void {
    place.release();
    this.#exchange.backend.model.dispatcher.admit(bytes, null).release();
  }

  /** @throws SERVE_UNAUTHORIZED */
  #checkKey({ apiKey }: GatewayEnvelope): void {
    if (this.#isKnown || this.#exchange.backend.keys.allows(apiKey)) return;
    throw new ServeError('SERVE_UNAUTHORIZED', 'The apiKey is none that is known here.');
  }
}

const NO_PLACE: Admission = { grow: () => {}, release: () => {} };

/** Whatever becomes of the call it is about: its result may be forgotten. */
function takeFeedback(exchange: Exchange, log: Log, { callID, feedback }: GatewayEnvelope): void {
  const { requestId } = exchange;
  const text = feedback?.toString('utf8', 0, MAX_LOGGED_BYTES).replace(/\s+/g, ' ') ?? '';
  log.info({ requestId, callID: callID?.slice(0, 100) ?? null, feedback: text }, 'feedback on a call');
  answer(exchange, plainReply(requestId, 'success'));
}

/** Starts at a time whose key is in a body that is still arriving: they take no place in the queue. The clients send at most 10 MiB each. */
const MAX_UNAUTHENTICATED = 64;
const MAX_UNAUTHENTICATED_BYTES = 128 * 1024 * 1024;

/** @throws SERVE_QUEUE_FULL */
function admitUnauthenticated({ unauthenticated }: Backend, announced: number): Admission {
  const checkRoom = (moreBytes: number): void => {
    if (unauthenticated.bytes + moreBytes > MAX_UNAUTHENTICATED_BYTES) throw noRoom();
  };
  if (unauthenticated.count >= MAX_UNAUTHENTICATED) throw noRoom();
  checkRoom(announced);
  return unauthenticated.add(announced, checkRoom);
}

function noRoom(): ServeError {
  return new ServeError('SERVE_QUEUE_FULL', undefined, { retryAfterS: 1 });
}
