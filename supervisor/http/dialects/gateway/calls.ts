/**
 * Starts calls for the gateway's clients, and answers their questions for results.
 *
 * Waiting costs a timer and no work. It needs no end at a drain: a job that has not ended is waited for then too,
 * and is failed if that takes too long. An answer of "running" would be followed by the next question at once.
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { Admission } from '../../../dispatch/arrivals.js';
import type { KeptJob } from '../../../jobs/kept-jobs.js';
import type { Ask } from '../../call/ask.js';
import { awaitRoutes } from '../../call/await-routes.js';
import { answer } from './answer.js';
import type { GatewayEnvelope } from './envelope.js';
import { GATEWAY_ROUTE, newGatewayJob } from './input.js';
import { endedReply, plainReply, type ReplyFields } from './reply.js';
import { onceClosed } from '../../socket/request-facts.js';
import { postResult } from '../../call/result-webhook.js';

/** The platform held a client this long; load balancers in front of a server give up after 60 s. */
const HOLD_MS = 50_000;

const CALL_PREFIX = 'call_';

/**
 * `mayWait`: the client takes the result at once, if it asks for no other. @throws SERVE_NOT_FOUND, with nothing
 * started
 */
export async function startCall(
  ask: Ask,
  place: Admission,
  envelope: GatewayEnvelope,
  wholeBytes: number,
  mayWait: boolean,
): Promise<void> {
  const { backend, request } = ask;
  const { model, jobs } = backend;
  const route = (model.routes ?? (await awaitRoutes(ask, null))).get(GATEWAY_ROUTE);
  if (route === undefined) throw noRoute();
  const job = await newGatewayJob(ask, envelope, wholeBytes);
  postResult(backend.webhooks, route, job);
  const kept = jobs.keep(job);
  kept.onceEnded(() => backend.onSettled(request, job, 200, kept.error));
  model.dispatcher.submit(job, place);
  const waits = mayWait && !envelope.startOnly;
  const callID = CALL_PREFIX + kept.id;
  hold(ask, kept, waits ? HOLD_MS : 0, () => {
    const { requestId } = ask;
    // Only a client that waited hears of the end; but none is told to come back for a call that has failed already.
    const tellsEnd = kept.ended && (waits || kept.error !== null);
    if (tellsEnd) answerEnded(ask, kept, { callID, finished: true });
    else answer(ask, plainReply(requestId, 'success', { callID, finished: false }));
  });
}

/** @throws SERVE_NOT_FOUND */
export function checkCall(ask: Ask, { callID, longPoll }: GatewayEnvelope): void {
  const { backend, requestId } = ask;
  const kept =
    callID?.startsWith(CALL_PREFIX) === true ? backend.jobs.get(callID.slice(CALL_PREFIX.length)) : null;
  if (kept === null) {
    const named = callID === null ? 'there is none in the body' : callID.slice(0, 100);
    throw new ServeError(
      'SERVE_NOT_FOUND',
      `callID does not exist, or its result is forgotten by now: ${named}`,
    );
  }
  hold(ask, kept, longPoll ? HOLD_MS : 0, () => {
    if (kept.ended) answerEnded(ask, kept);
    else answer(ask, plainReply(requestId, 'running'));
  });
}

/** The output may have to be read first; meanwhile the client may leave. */
function answerEnded(ask: Ask, kept: KeptJob, fields: ReplyFields = {}): void {
  void endedReply(ask.requestId, kept, fields).then((pieces) => {
    if (!ask.response.destroyed) answer(ask, pieces, kept);
  });
}

/** Goes on when the job has ended or the time is up, and never if the client leaves before. */
function hold({ request, response }: Ask, kept: KeptJob, limitMs: number, goOn: () => void): void {
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

function noRoute(): ServeError {
  return new ServeError(
    'SERVE_NOT_FOUND',
    `The app has no route ${GATEWAY_ROUTE}, which is the one that is called this way.`,
  );
}
