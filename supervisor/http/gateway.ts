/**
 * The gateway dialect: what the platform's API was to Banana's clients of majors 2 to 4. A call is started, then
 * asked for until it has ended.
 *
 * 1. A start has a place in the queue before its body is read, as every call has; a check and feedback need none.
 * 2. The body's control fields are found, the key among them; the model's input stays bytes.
 * 3. A start becomes a kept job of the app's route `/`, whether its client stays or not. Whoever waits for the
 *    result, in the start itself or in a check, is told when the job ends, or after a time that it still runs.
 *
 * Waiting costs a timer and no work. It needs no end at a drain: a job that has not ended is waited for then too,
 * and is failed if that takes too long. An answer of "running" would be followed by the next question at once.
 *
 * Every reply is HTTP 200, failures too (gateway-reply.ts).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { joinPieces } from '../../protocol/body-assembler.js';
import { ServeError } from '../../protocol/errors.js';
import type { Admission } from '../dispatch/arrivals.js';
import { Job, NOWHERE, type JobCall } from '../dispatch/job.js';
import type { KeptJob } from '../jobs/kept-jobs.js';
import type { Log } from '../observe/log.js';
import { keyOf } from './api-keys.js';
import type { Front } from './front.js';
import { readEnvelope, type GatewayEnvelope } from './gateway-envelope.js';
import { GATEWAY_PATHS, type GatewayOperation } from './gateway-paths.js';
import { endedReply, failureReply, plainReply } from './gateway-reply.js';
import { announcedBytes, readBody } from './read-body.js';
import { answerUnread, closesAfter } from './refuse.js';
import { postResult } from './result-webhook.js';
import { serverTiming } from './reply-sink.js';
import { bananaIdHeader, requestIdOf } from './request-id.js';
import { describeCall, onceClosed, pathOf } from './request-facts.js';

/** What the platform held a client for; load balancers in front of a server give up after 60 s. */
const HOLD_MS = 50_000;

/** Of a request that starts nothing: ids and a few words. They are taken without a place in the queue. */
const MAX_WORDS_BYTES = 64 * 1024;

/** Of feedback, in the log. */
const MAX_LOGGED_BYTES = 2048;

const ROUTE = '/';
const CALL_PREFIX = 'call_';

/** One request of the dialect. */
interface Exchange {
  readonly front: Front;
  readonly log: Log;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly acceptedAtMs: number;
  /** The header's, else the body's once that is read. */
  requestId: string;
}

/** What a request asks of the gateway; null if it is somebody else's. A route that the app has itself is the app's. */
export function gatewayOperation(front: Front, { method, url }: IncomingMessage): GatewayOperation | null {
  if (method !== 'POST') return null;
  const path = pathOf(url);
  const operation = GATEWAY_PATHS.get(path);
  return operation === undefined || front.model.routes?.has(path) === true ? null : operation;
}

/** Takes what is the gateway's; returns false for everything else. Checks the API key itself: it is in the body. */
export function takeGateway(
  front: Front,
  log: Log,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const operation = gatewayOperation(front, request);
  if (operation === null) return false;
  const requestId = requestIdOf(request.headers);
  receive({ front, log, request, response, requestId, acceptedAtMs: performance.now() }, operation);
  return true;
}

function receive(exchange: Exchange, operation: GatewayOperation): void {
  const { front, request, response } = exchange;
  const { maxBody, bodyTimeout } = front.options;
  const maxBodyBytes = operation.is === 'start' ? maxBody : Math.min(maxBody, MAX_WORDS_BYTES);
  const { dispatcher } = front.model;
  // Whose key is in the body is a stranger until that is read, and takes no place in the queue from those who are none.
  const isKnown = front.keys.allows(keyOf(request.headers));
  let place: Admission | null = null;
  let announced: number;
  try {
    announced = announcedBytes(request, maxBodyBytes);
    if (operation.is === 'start')
      place = isKnown ? dispatcher.admit(announced, null) : waitOutside(front, announced);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    turnAway(exchange, thrown);
    return;
  }
  const leave = (error: ServeError): void => {
    place?.release();
    turnAway(exchange, error);
  };
  onceClosed(request, response, () => place?.release());
  front.inviteBody(request, response);
  readBody(
    request,
    { announcedBytes: announced, maxBodyBytes, bodyTimeoutMs: bodyTimeout },
    {
      onBytes: (bytes) => place?.grow(bytes),
      onFailed: leave,
      onWhole: (pieces, bytes) => {
        try {
          const envelope = readEnvelope(joinPieces(pieces)); // one piece, unless it came chunked or is small
          exchange.requestId = requestIdOf(request.headers, envelope.id);
          checkKey(front, isKnown, envelope);
          if (place !== null && !isKnown) {
            place.release();
            place = dispatcher.admit(bytes, null);
          }
          if (place !== null) start(exchange, place, envelope, bytes, operation);
          else if (operation.is === 'check') check(exchange, envelope);
          else takeFeedback(exchange, envelope);
        } catch (thrown) {
          if (!(thrown instanceof ServeError)) throw thrown;
          leave(thrown);
        }
      },
    },
  );
}

/** @throws SERVE_QUEUE_FULL */
function waitOutside({ strangers }: Front, announced: number): Admission {
  const checkRoom = (moreBytes: number): void => {
    if (strangers.bytes + moreBytes > MAX_STRANGER_BYTES) throw noRoom();
  };
  if (strangers.count >= MAX_STRANGERS) throw noRoom();
  checkRoom(announced);
  return strangers.add(announced, checkRoom);
}

function noRoom(): ServeError {
  return new ServeError('SERVE_QUEUE_FULL', undefined, { retryAfterS: 1 });
}

/** Starts whose key has not come yet, at a time; the clients send at most 10 MiB each. */
const MAX_STRANGERS = 64;
const MAX_STRANGER_BYTES = 128 * 1024 * 1024;

/** @throws SERVE_UNAUTHORIZED */
function checkKey({ keys }: Front, isKnown: boolean, { apiKey }: GatewayEnvelope): void {
  if (isKnown || keys.allows(apiKey)) return;
  throw new ServeError('SERVE_UNAUTHORIZED', 'The apiKey is none that is known here.');
}

/** @throws SERVE_NOT_FOUND */
function start(
  exchange: Exchange,
  place: Admission,
  { modelInputs, startOnly }: GatewayEnvelope,
  wholeBytes: number,
  operation: GatewayOperation,
): void {
  const { front, request, acceptedAtMs } = exchange;
  const { model, jobs } = front;
  if (model.routes?.has(ROUTE) === false) throw noRoute();
  const input = modelInputs === null ? EMPTY_INPUT : ownBytes(modelInputs, wholeBytes);
  const job = new Job(describeStart(exchange, input), [input], { acceptedAtMs, deadlineAtMs: null }, NOWHERE);
  job.settleRoute = (route) => {
    if (route === undefined) return noRoute();
    postResult(front.webhooks, route, job);
    return null;
  };
  const kept = jobs.keep(job);
  kept.onceEnded(() => front.onSettled(request, job, 200, kept.error));
  if (model.routes !== null) job.settleRoute(model.routes.get(ROUTE));
  model.dispatcher.submit(job, place);
  const waits = operation.is === 'start' && operation.waits && !startOnly;
  const callID = CALL_PREFIX + kept.id;
  hold(exchange, kept, waits ? HOLD_MS : 0, () => {
    const { requestId } = exchange;
    // Only who waited hears of the end; but nobody is told to come back for what failed before it began to wait.
    const tellsEnd = kept.ended && (waits || kept.error !== null);
    if (tellsEnd) answer(exchange, endedReply(requestId, kept, { callID, finished: true }), kept);
    else answer(exchange, plainReply(requestId, 'success', { callID, finished: false }));
  });
}

/** @throws SERVE_NOT_FOUND */
function check(exchange: Exchange, { callID, longPoll }: GatewayEnvelope): void {
  const { front, requestId } = exchange;
  const kept =
    callID?.startsWith(CALL_PREFIX) === true ? front.jobs.get(callID.slice(CALL_PREFIX.length)) : null;
  if (kept === null) {
    const named = callID === null ? 'there is none in the body' : callID.slice(0, 100);
    throw new ServeError(
      'SERVE_NOT_FOUND',
      `callID does not exist, or its result is forgotten by now: ${named}`,
    );
  }
  hold(exchange, kept, longPoll ? HOLD_MS : 0, () => {
    if (kept.ended) answer(exchange, endedReply(requestId, kept), kept);
    else answer(exchange, plainReply(requestId, 'running'));
  });
}

/** Whatever becomes of the call it is about: its result may be forgotten. */
function takeFeedback(exchange: Exchange, { callID, feedback }: GatewayEnvelope): void {
  const { log, requestId } = exchange;
  const text = feedback?.toString('utf8', 0, MAX_LOGGED_BYTES).replace(/\s+/g, ' ') ?? '';
  log.info({ requestId, callID: callID?.slice(0, 100) ?? null, feedback: text }, 'feedback on a call');
  answer(exchange, plainReply(requestId, 'success'));
}

/** Goes on when the job has ended or the time is up, and never if the client leaves before. */
function hold({ request, response }: Exchange, kept: KeptJob, limitMs: number, goOn: () => void): void {
  if (kept.ended || limitMs === 0) {
    goOn();
    return;
  }
  const stop = (): void => {
    clearTimeout(timer);
    stopListening();
  };
  const timer = setTimeout(() => {
    stop();
    goOn();
  }, limitMs);
  const stopListening = kept.onceEnded(() => {
    stop();
    goOn();
  });
  onceClosed(request, response, stop);
}

/** `ended`: the job whose times the reply tells. */
function answer(
  { front, request, response, requestId }: Exchange,
  pieces: readonly Buffer[],
  ended?: KeptJob,
): void {
  response.writeHead(200, replyHeaders(front, request, requestId, pieces, ended));
  response.cork(); // one gathered write
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
}

function turnAway({ front, request, response, requestId }: Exchange, error: ServeError): void {
  const pieces = failureReply(requestId, error);
  const closes = front.closing() || closesAfter(request, error);
  const headers = replyHeaders(front, request, requestId, pieces);
  if (closes) headers['Connection'] = 'close';
  answerUnread(request, response, { status: 200, headers, body: Buffer.concat(pieces), closes });
  front.onRefused(request, requestId, error);
}

function replyHeaders(
  front: Front,
  request: IncomingMessage,
  requestId: string,
  pieces: readonly Buffer[],
  ended?: KeptJob,
): Record<string, string | number> {
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': pieces.reduce((sum, piece) => sum + piece.length, 0),
    'X-Request-Id': requestId,
    ...bananaIdHeader(request),
  };
  if (ended !== undefined) headers['Server-Timing'] = serverTiming(ended);
  if (front.closing()) headers['Connection'] = 'close';
  return headers;
}

function noRoute(): ServeError {
  return new ServeError(
    'SERVE_NOT_FOUND',
    `The app has no route ${ROUTE}, which is the one that is called this way.`,
  );
}

/** A small part of a large body is copied, so that it is all that is kept, as the queue's limit counts it. */
function ownBytes(part: Buffer, wholeBytes: number): Buffer {
  return 2 * part.length < wholeBytes ? Buffer.from(part) : part;
}

/** A JSON call like any other, whose client can only read ASCII (as its id tells the worker, under Banana's name). */
function describeStart({ request, requestId }: Exchange, input: Buffer): JobCall {
  const call = describeCall(request, requestId, { route: ROUTE, format: 'json' }, null, input.length);
  const type = 'application/json';
  const headers = [...headersOfCaller(request), 'Content-Type', type, 'X-Banana-Request-Id', requestId];
  return { ...call, contentType: type, accept: type, headers: headers.join('\n') };
}

/** Those that do not speak of the envelope. */
function headersOfCaller({ rawHeaders }: IncomingMessage): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    if (!ENVELOPE_HEADERS.has(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}

const ENVELOPE_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'content-length',
  'content-type',
  'transfer-encoding',
  'x-banana-request-id',
]);

const EMPTY_INPUT = Buffer.from('{}');
