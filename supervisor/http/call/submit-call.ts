/**
 * Makes a job of a call whose body has arrived, and gives it to the dispatcher. A worker's answer comes back through the
 * reply sink. A call that outlives its client is stored instead (`submit-job.ts`).
 */
import { Job } from '../../dispatch/job.js';
import { onceClosed } from '../socket/request-facts.js';
import type { RequestContext } from '../request/request-context.js';
import type { ArrivedCall } from './arrived-call.js';
import type { CallPlan } from './call-plan.js';
import { describeCall } from './describe-call.js';
import { ReplySink } from '../answer/reply-sink.js';
import { submitJob } from './submit-job.js';
import { postResult } from './result-webhook.js';
import { checkBody } from './route-check.js';

/**
 * Submits the call as a job whose sink answers the client. Returns a promise only for a call that outlives its client, which
 * is stored; it rejects with the error that refuses the call. @throws SERVE_BAD_BODY
 */
export function submitCall(
  context: RequestContext,
  plan: CallPlan,
  arrived: ArrivedCall,
): Promise<void> | null {
  const { routed, body, opened, place } = arrived;
  if (opened === null) checkBody(routed, body, plan);
  if (routed.job !== null) return submitJob(context, plan, { routed, body, opened, place, job: routed.job });
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
