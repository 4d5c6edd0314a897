/**
 * One call over HTTP, top to bottom, the same for every dialect:
 *
 * 1. Who it is, how long it may take, whether there is a place for it: decided before the body is read.
 * 2. The body, in pieces, within its limits.
 * 3. A job whose answer goes back on this response, by way of the dispatcher, a worker and the reply sink.
 *
 * Leaves sideways with `refuse`: an error reply in the dialect's envelope.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServeError } from '../../protocol/errors.js';
import { joinHeaderLines } from '../../protocol/header-lines.js';
import type { Format, Route } from '../../protocol/messages.js';
import type { Admission } from '../dispatch/arrivals.js';
import { Job, type JobCall } from '../dispatch/job.js';
import type { Front } from './front.js';
import { announcedBytes, readBody } from './read-body.js';
import { refuse } from './refuse.js';
import { ReplySink } from './reply-sink.js';
import { JOB_ID_HEADER } from './potassium.js';
import { echoBananaId, requestIdOf } from './request-id.js';
import { bodyMistake, routeMistake } from './route-check.js';

export interface CallTarget {
  readonly route: string;
  readonly format: Format;
}

export function submitCall(
  front: Front,
  request: IncomingMessage,
  response: ServerResponse,
  target: CallTarget,
): void {
  const acceptedAtMs = performance.now();
  const { headers } = request;
  const requestId = requestIdOf(headers);
  const { dispatcher, routes } = front.model;
  echoBananaId(request, response);

  const turnAway = (error: ServeError): void => {
    const timing = `queue;dur=${(performance.now() - acceptedAtMs).toFixed(2)}, run;dur=0`;
    refuse(request, response, error, { requestId, timing, close: front.closing() });
    front.onRefused(request, requestId, error);
  };

  let deadlineMs: number | null;
  let admission: Admission;
  let announced: number;
  try {
    const mistake = routes === null ? null : routeMistake(routes.get(target.route), request);
    if (mistake !== null) throw mistake;
    deadlineMs = deadlineOf(headers['x-request-timeout-seconds']);
    announced = announcedBytes(request, front.options.maxBody);
    admission = dispatcher.admit(announced, deadlineMs === null ? null : acceptedAtMs + deadlineMs);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    turnAway(thrown);
    return;
  }

  let job: Job | null = null;
  let isKept = false;
  onceClosed(request, response, () => {
    if (job === null) admission.release();
    else if (!job.settled && !isKept) dispatcher.giveUp(job, 'SERVE_CANCELLED', 'the client left');
  });
  front.inviteBody(request, response);
  readBody(
    request,
    {
      announcedBytes: announced,
      maxBodyBytes: front.options.maxBody,
      bodyTimeoutMs: front.options.bodyTimeout,
    },
    {
      onBytes: (bytes) => admission.grow(bytes),
      onFailed: (error) => {
        admission.release();
        turnAway(error);
      },
      onWhole: (pieces, bytes) => {
        const settleRoute = (route: Route | undefined): ServeError | null => {
          const mistake = routeMistake(route, request) ?? bodyMistake(route as Route, bytes);
          // Asked again by every worker that loads the app; answered once.
          if (mistake === null && job !== null && !isKept && route?.kind === 'background') {
            isKept = true;
            answerStarted(front, request, response, job);
          }
          return mistake;
        };
        const known = front.model.routes;
        const mistake = known === null ? null : settleRoute(known.get(target.route));
        if (mistake !== null) {
          admission.release();
          turnAway(mistake);
          return;
        }
        const call = describeCall(request, requestId, target, deadlineMs, bytes);
        const times = { acceptedAtMs, deadlineAtMs: deadlineMs === null ? null : acceptedAtMs + deadlineMs };
        const sink = new ReplySink({
          request,
          response,
          requestId,
          stallTimeoutMs: front.options.stallTimeout,
          shouldClose: front.closing,
          giveUp: (unsendable, error, reason) => dispatcher.giveUp(unsendable, error, reason),
          onSettled: (settled, status, error) => front.onSettled(request, settled, status, error),
        });
        job = new Job(call, pieces, times, sink);
        if (known === null) job.settleRoute = settleRoute;
        dispatcher.submit(job, admission);
        if (known !== null && !job.settled) settleRoute(known.get(target.route));
      },
    },
  );
}

/** The caller of a background route is answered, and its job lives on. */
function answerStarted(front: Front, request: IncomingMessage, response: ServerResponse, job: Job): void {
  const kept = front.jobs.keep(job);
  kept.onceEnded(() => front.onJobEnded(kept));
  const body = '{"started":true}\n';
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    'X-Request-Id': job.call.requestId,
    [JOB_ID_HEADER]: kept.id,
  };
  if (front.closing()) headers['Connection'] = 'close';
  response.writeHead(200, headers);
  response.end(body);
  front.onSettled(request, job, 200, null);
}

/** The reply is out, or the client has left. */
function onceClosed(request: IncomingMessage, response: ServerResponse, callback: () => void): void {
  response.once('close', callback);
  if (response.socket !== null) return;
  // Pipelined behind another call: this response has no connection yet, and would never hear that it closed.
  const { socket } = request;
  socket.setMaxListeners(0);
  socket.once('close', callback);
  response.once('close', () => socket.off('close', callback));
}

function describeCall(
  request: IncomingMessage,
  requestId: string,
  { route, format }: CallTarget,
  deadlineMs: number | null,
  bodyBytes: number,
): JobCall {
  const { headers, rawHeaders } = request;
  const url = request.url ?? '/';
  const question = url.indexOf('?');
  return {
    id: 0,
    bodyBytes,
    requestId,
    route,
    path: pathOf(url),
    query: question < 0 ? '' : url.slice(question + 1),
    format,
    contentType: headers['content-type'] ?? '',
    accept: headers.accept ?? '',
    deadlineMs: deadlineMs === null ? null : Date.now() + deadlineMs,
    headers: joinHeaderLines(rawHeaders),
  };
}

/** The request's path as written, without the query; of the absolute form (RFC 9112 section 3.2.2) too. */
export function pathOf(url = '/'): string {
  if (!url.startsWith('/')) return URL.canParse(url) ? new URL(url).pathname : url;
  const question = url.indexOf('?');
  return question < 0 ? url : url.slice(0, question);
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
