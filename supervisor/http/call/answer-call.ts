/**
 * One call over HTTP, from its request to its job, top to bottom and the same for every app:
 *
 * 1. admit: a place, decided before the body is read.
 * 2. route: known at once if the app is loaded, else awaited.
 * 3. receive: the body, within its limits.
 * 4. submit: a job, whose answer goes back on this response by way of the dispatcher, a worker and the reply sink. The
 *    caller of a background route is answered now, and the job is kept.
 *
 * What goes wrong before the job is submitted is thrown and answered in one place. After that the job tells its sink.
 */
import { ServeError } from '../../../protocol/errors.js';
import type { Route } from '../../../protocol/messages.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { Job } from '../../dispatch/job.js';
import type { Body } from '../socket/body-memory.js';
import { announcedBytes, receiveBody } from '../socket/receive-body.js';
import { refuse } from '../socket/refuse.js';
import { onceClosed } from '../socket/request-facts.js';
import { answerStarted } from './answer-started.js';
import type { Ask } from './ask.js';
import { describeCall, type CallTarget } from './describe-call.js';
import { awaitRoutes } from './await-routes.js';
import { ReplySink } from './reply-sink.js';
import { postFailure, postResult } from './result-webhook.js';
import { checkBody, fittingRoute } from './route-check.js';

/** Answers every request; rejects only for a defect of ours. */
export async function answerCall(ask: Ask, target: CallTarget): Promise<void> {
  const { backend, request, response } = ask;
  const { model, options } = backend;
  let place: Admission | null = null;
  try {
    const announced = announcedBytes(request, options.maxBody);
    const limitMs = deadlineOf(request.headers['x-request-timeout-seconds']);
    place = model.dispatcher.admit(announced);

    const routes = model.routes ?? (await awaitRoutes(ask, limitMs));
    const route = fittingRoute(routes, target.route, request);
    const deadlineMs = route.kind === 'background' ? null : limitMs; // nobody waits for its answer
    if (deadlineMs !== null) model.dispatcher.checkDeadline(ask.acceptedAtMs + deadlineMs);

    backend.inviteBody(request, response);
    const body = await receiveBody(request, bodyLimits(announced, options), place);
    checkBody(route, body);

    submit(ask, target, route, deadlineMs, body, place);
  } catch (thrown) {
    place?.release();
    if (!(thrown instanceof ServeError)) throw thrown;
    fail(ask, thrown);
  }
}

function submit(
  ask: Ask,
  target: CallTarget,
  route: Route,
  deadlineMs: number | null,
  body: Body,
  place: Admission,
): void {
  const { backend, request, response, requestId, acceptedAtMs } = ask;
  const { dispatcher } = backend.model;
  const call = describeCall(request, requestId, target, deadlineMs, body.bytes);
  const deadlineAtMs = deadlineMs === null ? null : acceptedAtMs + deadlineMs;
  const job = new Job(call, body.pieces, { acceptedAtMs, deadlineAtMs }, newSink(ask), body);
  onceClosed(request, response, () => {
    if (!job.settled && !job.isDetached) dispatcher.giveUp(job, 'SERVE_CANCELLED', 'the client left');
  });
  dispatcher.submit(job, place);
  if (job.settled) return;
  postResult(backend.webhooks, route, job);
  if (route.kind === 'background')
    postFailure(backend.webhooks, route, answerStarted(backend, request, response, job));
}

function newSink({ backend, request, response, requestId }: Ask): ReplySink {
  return new ReplySink({
    request,
    response,
    requestId,
    exposeErrors: backend.options.exposeErrors,
    shouldClose: () => backend.closing(request),
    giveUp: (job, error, reason) => backend.model.dispatcher.giveUp(job, error, reason),
    onSettled: (job, status, error) => backend.onSettled(request, job, status, error),
  });
}

/** A client that has left is told nothing. */
function fail({ backend, request, response, requestId, acceptedAtMs }: Ask, error: ServeError): void {
  if (error.code === 'SERVE_CANCELLED') return;
  const timing = `queue;dur=${(performance.now() - acceptedAtMs).toFixed(2)}, run;dur=0`;
  refuse(request, response, error, { requestId, timing, close: backend.closing(request) });
  backend.onRefused(request, requestId, error);
}

function bodyLimits(
  announced: number,
  { maxBody, bodyTimeout }: { maxBody: number; bodyTimeout: number },
): Parameters<typeof receiveBody>[1] {
  return { announcedBytes: announced, maxBodyBytes: maxBody, bodyTimeoutMs: bodyTimeout };
}

/** The client's own time limit in ms from now; null without one. @throws SERVE_BAD_REQUEST if it is no duration */
function deadlineOf(header: string | string[] | undefined): number | null {
  if (header === undefined) return null;
  const seconds = Number(header);
  if (header !== '' && seconds > 0 && seconds <= MAX_DEADLINE_S) return seconds * 1000;
  throw new ServeError(
    'SERVE_BAD_REQUEST',
    `X-Request-Timeout-Seconds must be a number of seconds above 0 and up to ${MAX_DEADLINE_S}.`,
  );
}

const MAX_DEADLINE_S = 86_400;
