/**
 * Makes a job of a call whose body has arrived, and gives it to the dispatcher. A worker's answer comes back through the
 * reply sink. A call that outlives its client is stored instead, and its client is answered once that is done.
 */
import type { Admission } from '../../dispatch/arrivals.js';
import { Job, type JobCall } from '../../dispatch/job.js';
import type { JobRecord, StoredBody } from '../../jobs/kept-jobs.js';
import type { Body } from '../socket/body-memory.js';
import { onceClosed } from '../socket/request-facts.js';
import { answerStarted } from '../answer/answer-started.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan, OpenedBody } from './call-plan.js';
import { describeCall } from './describe-call.js';
import { ReplySink } from '../answer/reply-sink.js';
import { postResult } from './result-webhook.js';
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
 * is stored; it rejects with the error that refuses the call. @throws SERVE_BAD_BODY
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
  arrived: ArrivedCall,
): Promise<void> {
  const { routed, body } = arrived;
  const target = { model: routed.model, route: routed.route.path };
  const call = describeCall(context, plan, target, null, body.bytes);
  answerStarted(context, await storeCall(context, arrived, call, body));
}

/** Stores a call whose body wraps the input; its dialect answers the client, now or when the job ends. */
async function submitOpened(
  context: RequestContext,
  plan: CallPlan,
  arrived: ArrivedCall,
  { input, described, answerKept }: OpenedBody,
): Promise<void> {
  const { routed, body } = arrived;
  const target = { model: routed.model, route: routed.route.path };
  const call = { ...describeCall(context, plan, target, null, input.length), ...described };
  const pieces = { pieces: [input], bytes: input.length, release: () => body.release() };
  await answerKept(context, await storeCall(context, arrived, call, pieces));
}

/** Stores a call as a job, which a worker pulls from now on. @throws SERVE_NOT_KEPT, SERVE_NOT_READY, SERVE_SHUTTING_DOWN */
async function storeCall(
  { backend, dialect, hasKey }: RequestContext,
  { routed: { model, route }, place }: ArrivedCall,
  call: JobCall,
  body: StoredBody,
): Promise<JobRecord> {
  const noWorker = model.dispatcher.noWorkerError();
  if (noWorker !== null) throw noWorker; // the client can still be answered with it
  const accepted = await backend.jobs.accept({
    call,
    body,
    dialect: dialect.name,
    hasKey,
    isBackground: route.kind === 'background',
    webhook: route.webhook,
    waitLimitMs: model.options.queueTimeout,
  });
  place.release();
  return accepted;
}
