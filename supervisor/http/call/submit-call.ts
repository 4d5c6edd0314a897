/**
 * Makes a job of a call whose body has arrived, and gives it to the dispatcher. A worker's answer comes back through the
 * reply sink. A job that outlives its client is recorded first, and its client is answered once that is done.
 */
import type { Admission } from '../../dispatch/arrivals.js';
import { Job, NOWHERE } from '../../dispatch/job.js';
import type { Body } from '../socket/body-memory.js';
import { onceClosed } from '../socket/request-facts.js';
import { answerStarted, keptStatus } from '../answer/answer-started.js';
import { statusOf } from '../answer/house-error.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan, OpenedBody } from './call-plan.js';
import { describeCall } from './describe-call.js';
import { ReplySink } from '../answer/reply-sink.js';
import { postFailure, postResult } from './result-webhook.js';
import { checkBody, type RoutedCall } from './route-check.js';

/** A call that is ready to be run by a worker. */
export interface ArrivedCall {
  readonly routed: RoutedCall;
  readonly body: Body;
  /** The input and control fields that the dialect read from the body; null if the body is the input. */
  readonly opened: OpenedBody | null;
  readonly place: Admission;
}

/**
 * Submits the call as a job whose sink answers the client. Returns a promise only for a call that outlives its client, which
 * is recorded first; it rejects with the error that refuses the call. @throws SERVE_BAD_BODY
 */
export function submitCall(
  context: RequestContext,
  plan: CallPlan,
  arrived: ArrivedCall,
): Promise<void> | null {
  if (arrived.opened !== null) return submitOpened(context, plan, arrived, arrived.opened);
  checkBody(arrived.routed.route, arrived.body, plan);
  if (arrived.routed.route.kind === 'background') return submitBackground(context, plan, arrived);
  submitOwned(context, plan, arrived);
  return null;
}

function submitOwned(
  context: RequestContext,
  plan: CallPlan,
  { routed: { model, route, deadlineMs }, body, place }: ArrivedCall,
): void {
  const { backend, request, response, acceptedAtMs } = context;
  const { dispatcher } = model;
  const call = describeCall(context, plan, { model, route: route.path }, deadlineMs, body.bytes);
  const deadlineAtMs = deadlineMs === null ? null : acceptedAtMs + deadlineMs;
  const job = new Job(
    call,
    body.pieces,
    { acceptedAtMs, deadlineAtMs },
    new ReplySink(context, dispatcher),
    body,
  );
  onceClosed(request, response, () => {
    if (!job.settled) dispatcher.giveUp(job, 'SERVE_CANCELLED', 'the client left');
  });
  dispatcher.submit(job, place);
  if (!job.settled) postResult(backend.webhooks, route, job);
}

/** Answers that the job has started; its result is at `GET /_k/jobs/:id` and goes to the route's webhook. */
async function submitBackground(
  context: RequestContext,
  plan: CallPlan,
  { routed: { model, route }, body, place }: ArrivedCall,
): Promise<void> {
  const { backend, acceptedAtMs } = context;
  const call = {
    ...describeCall(context, plan, { model, route: route.path }, null, body.bytes),
    statusOf,
  };
  const job = new Job(call, body.pieces, { acceptedAtMs, deadlineAtMs: null }, NOWHERE, body);
  const kept = await backend.jobs.keep(job);
  model.dispatcher.submit(job, place);
  if (kept.error !== null) throw kept.error; // the client can still be answered with it
  postResult(backend.webhooks, route, job);
  postFailure(backend.webhooks, route, kept);
  kept.onceEnded(() => backend.observer.settled(context, job, keptStatus(kept), kept.error));
  answerStarted(context, kept);
}

/** Submits a call whose body wraps the input; its dialect answers the client, now or when the job ends. */
async function submitOpened(
  context: RequestContext,
  plan: CallPlan,
  { routed: { model, route }, body, place }: ArrivedCall,
  { input, described, answerKept }: OpenedBody,
): Promise<void> {
  const { backend, acceptedAtMs } = context;
  const target = { model, route: route.path };
  const call = {
    ...describeCall(context, plan, target, null, input.length),
    ...described,
    statusOf,
  };
  const job = new Job(call, [input], { acceptedAtMs, deadlineAtMs: null }, NOWHERE, body);
  const kept = await backend.jobs.keep(job);
  postResult(backend.webhooks, route, job);
  kept.onceEnded(() => backend.observer.settled(context, job, keptStatus(kept), kept.error));
  model.dispatcher.submit(job, place);
  answerKept(context, kept);
}
