/**
 * Makes a call whose body has arrived a job. Its answer goes back on the response by way of the dispatcher, a worker and
 * the reply sink; a job that outlives its client is kept, and its client is answered as soon as it is on record.
 */
import type { Route } from '../../../protocol/wire/messages.js';
import type { Admission } from '../../dispatch/arrivals.js';
import { Job, NOWHERE } from '../../dispatch/job.js';
import type { Model } from '../../models/model.js';
import type { Body } from '../socket/body-memory.js';
import { onceClosed } from '../socket/request-facts.js';
import { answerStarted, statusOf } from '../answer/answer-started.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan, OpenedBody } from './call-plan.js';
import { describeCall } from './describe-call.js';
import { ReplySink } from '../answer/reply-sink.js';
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

/**
 * Whoever waits for the answer is told of every failure; the promise is for calls that outlive their clients, which are
 * put on record first. It rejects with what they are refused with.
 */
export function submitCall(
  context: RequestContext,
  plan: CallPlan,
  arrived: ArrivedCall,
): Promise<void> | null {
  if (arrived.opened !== null) return submitOpened(context, plan, arrived, arrived.opened);
  if (arrived.route.kind === 'background') return submitBackground(context, plan, arrived);
  submitOwned(context, plan, arrived);
  return null;
}

function submitOwned(
  context: RequestContext,
  plan: CallPlan,
  { model, route, deadlineMs, body, place }: ArrivedCall,
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

/** Its caller is told that the call is taken; what comes of it, `GET /_k/jobs/:id` and the route's webhook say. */
async function submitBackground(
  context: RequestContext,
  plan: CallPlan,
  { model, route, body, place }: ArrivedCall,
): Promise<void> {
  const { backend, acceptedAtMs } = context;
  const call = describeCall(context, plan, { model, route: route.path }, null, body.bytes);
  const job = new Job(call, body.pieces, { acceptedAtMs, deadlineAtMs: null }, NOWHERE, body);
  const kept = await backend.jobs.keep(job);
  model.dispatcher.submit(job, place);
  if (kept.error !== null) throw kept.error; // its caller can be told in place of whoever would ask
  postResult(backend.webhooks, route, job);
  postFailure(backend.webhooks, route, kept);
  kept.onceEnded(() => backend.observer.settled(context, job, statusOf(kept), kept.error));
  answerStarted(context, kept);
}

/** The input stood in a body that wraps it: the dialect knows how its caller hears of the job. */
async function submitOpened(
  context: RequestContext,
  plan: CallPlan,
  { model, route, place }: ArrivedCall,
  { input, described, answerKept }: OpenedBody,
): Promise<void> {
  const { backend, acceptedAtMs } = context;
  const target = { model, route: route.path };
  const call = { ...describeCall(context, plan, target, null, input.length), ...described };
  const job = new Job(call, [input], { acceptedAtMs, deadlineAtMs: null }, NOWHERE);
  const kept = await backend.jobs.keep(job);
  postResult(backend.webhooks, route, job);
  kept.onceEnded(() => backend.observer.settled(context, job, statusOf(kept), kept.error));
  model.dispatcher.submit(job, place);
  answerKept(context, kept);
}
