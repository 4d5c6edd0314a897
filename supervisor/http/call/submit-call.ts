/**
 * One call over HTTP, top to bottom, the same for every app:
 *
 * 1. Who it is, how long it may take, whether there is a place for it: decided before the body is read.
 * 2. The body, in pieces, within its limits (take-body.ts).
 * 3. A job whose answer goes back on this response, by way of the dispatcher, a worker and the reply sink. Of a
 *    background route the caller is answered now, and the job is kept.
 *
 * Leaves sideways with `refuse`: an error reply. Which route it is, is known at 1 unless the app is still loading; then
 * it is looked up at 3, or while the job waits.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServeError } from '../../../protocol/errors.js';
import type { Route } from '../../../protocol/messages.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { Job } from '../../dispatch/job.js';
import type { Backend } from './backend.js';
import { answerStarted } from './answer-started.js';
import { announcedBytes } from '../socket/read-body.js';
import { refuse } from '../socket/refuse.js';
import { ReplySink } from './reply-sink.js';
import { describeCall, type CallTarget } from './describe-call.js';
import { requestIdOf } from '../socket/request-id.js';
import { postFailure, postResult } from './result-webhook.js';
import { bodyMistake, routeMistake } from './route-check.js';
import { takeBody, type BodyOwner, type ExpectedBody } from './take-body.js';

export function submitCall(
  backend: Backend,
  request: IncomingMessage,
  response: ServerResponse,
  target: CallTarget,
): void {
  takeBody(backend, request, response, new HttpCall(backend, request, response, target));
}

class HttpCall implements BodyOwner {
  readonly #backend: Backend;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #target: CallTarget;
  readonly #acceptedAtMs = performance.now();
  readonly #requestId: string;
  /** Undefined until it is known, and found to fit. */
  #route: Route | undefined;
  #deadlineMs: number | null = null;
  #job: Job | null = null;
  /** The caller is answered, and its leaving is no reason to stop. */
  #isKept = false;

  constructor(backend: Backend, request: IncomingMessage, response: ServerResponse, target: CallTarget) {
    this.#backend = backend;
    this.#request = request;
    this.#response = response;
    this.#target = target;
    this.#requestId = requestIdOf(request.headers);
  }

  admit(): ExpectedBody {
    const { maxBody: maxBodyBytes } = this.#backend.options;
    this.#findRoute();
    const deadlineMs = deadlineOf(this.#request.headers['x-request-timeout-seconds']);
    if (this.#route?.kind !== 'background') this.#deadlineMs = deadlineMs; // nobody waits for its answer
    const announced = announcedBytes(this.#request, maxBodyBytes);
    const place = this.#backend.model.dispatcher.admit(announced, this.#deadlineAtMs);
    return { place, announcedBytes: announced, maxBodyBytes };
  }

  onWhole(pieces: Buffer[], bytes: number, place: Admission): void {
    this.#findRoute();
    if (this.#route !== undefined) checkBody(this.#route, pieces, bytes);
    const call = describeCall(this.#request, this.#requestId, this.#target, this.#deadlineMs, bytes);
    const times = { acceptedAtMs: this.#acceptedAtMs, deadlineAtMs: this.#deadlineAtMs };
    const job = new Job(call, pieces, times, this.#newSink());
    this.#job = job;
    if (this.#route === undefined) job.settleRoute = (route) => this.#settleRoute(route, pieces, bytes, job);
    this.#backend.model.dispatcher.submit(job, place);
    if (this.#route !== undefined && !job.settled) this.#adopt(this.#route, job);
  }

  turnAway(error: ServeError): void {
    const timing = `queue;dur=${(performance.now() - this.#acceptedAtMs).toFixed(2)}, run;dur=0`;
    const close = this.#backend.closing();
    refuse(this.#request, this.#response, error, { requestId: this.#requestId, timing, close });
    this.#backend.onRefused(this.#request, this.#requestId, error);
  }

  onClosed(): void {
    const job = this.#job;
    if (job === null || job.settled || this.#isKept) return;
    this.#backend.model.dispatcher.giveUp(job, 'SERVE_CANCELLED', 'the client left');
  }

  /** @throws SERVE_NOT_FOUND, SERVE_BAD_REQUEST if the request and its route do not fit */
  #findRoute(): void {
    const { routes } = this.#backend.model;
    if (this.#route !== undefined || routes === null) return;
    const route = routes.get(this.#target.route);
    const mistake = routeMistake(route, this.#request);
    if (mistake !== null) throw mistake;
    this.#route = route;
  }

  /** The app is loaded, and the job still waits. Asked by every worker that loads it; answered once. */
  #settleRoute(route: Route | undefined, pieces: Buffer[], bytes: number, job: Job): ServeError | null {
    if (this.#route !== undefined) return route === undefined ? new ServeError('SERVE_NOT_FOUND') : null;
    const mistake = routeMistake(route, this.#request) ?? bodyMistake(route as Route, pieces, bytes);
    if (mistake !== null || route === undefined) return mistake;
    this.#route = route;
    this.#adopt(route, job);
    return null;
  }

  /** What a route wants besides an answer to its caller. */
  #adopt(route: Route, job: Job): void {
    postResult(this.#backend.webhooks, route, job);
    if (route.kind !== 'background') return;
    this.#isKept = true;
    const kept = answerStarted(this.#backend, this.#request, this.#response, job);
    postFailure(this.#backend.webhooks, route, kept);
  }

  #newSink(): ReplySink {
    const backend = this.#backend;
    const request = this.#request;
    return new ReplySink({
      request,
      response: this.#response,
      requestId: this.#requestId,
      stallTimeoutMs: backend.options.stallTimeout,
      exposeErrors: backend.options.exposeErrors,
      shouldClose: backend.closing,
      giveUp: (unsendable, error, reason) => backend.model.dispatcher.giveUp(unsendable, error, reason),
      onSettled: (settled, status, error) => backend.onSettled(request, settled, status, error),
    });
  }

  get #deadlineAtMs(): number | null {
    return this.#deadlineMs === null ? null : this.#acceptedAtMs + this.#deadlineMs;
  }
}

/** @throws SERVE_BAD_BODY */
function checkBody(route: Route, pieces: Buffer[], bytes: number): void {
  const mistake = bodyMistake(route, pieces, bytes);
  if (mistake !== null) throw mistake;
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
