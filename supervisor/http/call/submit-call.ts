/**
 * Makes a call whose body has arrived a job. Its answer goes back on the response by way of the dispatcher, a worker and
 * the reply sink; the caller of a background route is answered now, and the job is kept.
 */
import type { Route } from '../../../protocol/messages.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { Job, NOWHERE } from '../../dispatch/job.js';
import type { Model } from '../../models/model.js';
import type { Body } from '../socket/body-memory.js';
import { onceClosed } from '../socket/request-facts.js';
import { answerStarted, statusOf } from './answer-started.js';
import type { Ask } from './ask.js';
import type { CallPlan, OpenedBody } from './call-plan.js';
import { describeCall } from './describe-call.js';
import { ReplySink } from './reply-sink.js';
import { postFailure, postResult } from './result-webhook.js';

/** A call that only needs a worker. */
export interface ArrivedCall {
  readonly model: Model;
  readonly route: Route;
  readonly deadlineMs: number | null;
  readonly body: Body;
  /** What was found in the body, if it wraps the input. */
  readonly opened: OpenedBody | null;
  readonly place: Admission;
}

export function submitCall(ask: Ask, plan: CallPlan, arrived: ArrivedCall): void {
  if (arrived.opened !== null) submitKept(ask, plan, arrived, arrived.opened);
  else submitOwned(ask, plan, arrived);
}

function submitOwned(ask: Ask, plan: CallPlan, { model, route, deadlineMs, body, place }: ArrivedCall): void {
  const { backend, request, response, acceptedAtMs } = ask;
  const { dispatcher } = model;
  const call = describeCall(ask, plan, { model, route: route.path }, deadlineMs, body.bytes);
  const deadlineAtMs = deadlineMs === null ? null : acceptedAtMs + deadlineMs;
  const job = new Job(
    call,
    body.pieces,
    { acceptedAtMs, deadlineAtMs },
    new ReplySink(ask, dispatcher),
    body,
  );
  onceClosed(request, response, () => {
    if (!job.settled && !job.isDetached) dispatcher.giveUp(job, 'SERVE_CANCELLED', 'the client left');
  });
  dispatcher.submit(job, place);
  if (job.settled) return;
  postResult(backend.webhooks, route, job);
  if (route.kind === 'background') postFailure(backend.webhooks, route, answerStarted(ask, job));
}

/** A job that no client's leaving ends. */
function submitKept(
  ask: Ask,
  plan: CallPlan,
  { model, route, place }: ArrivedCall,
  opened: OpenedBody,
): void {
  const { backend, acceptedAtMs } = ask;
  const { input, described } = opened;
  const target = { model, route: route.path };
  const call = { ...describeCall(ask, plan, target, null, input.length), ...described };
  const job = new Job(call, [input], { acceptedAtMs, deadlineAtMs: null }, NOWHERE);
  postResult(backend.webhooks, route, job);
  const kept = backend.jobs.keep(job);
  kept.onceEnded(() => backend.onSettled(ask, job, statusOf(kept), kept.error));
  model.dispatcher.submit(job, place);
  opened.answerKept(ask, kept);
}
