/** Stores a call that outlives its client as a job, which a worker pulls, and answers the client once that is done. */
import { joinHeaderLines, splitHeaderLines } from '../../../protocol/text/header-lines.js';
import type { JobCall } from '../../dispatch/job.js';
import type { JobRecord, StoredBody } from '../../jobs/kept-jobs.js';
import { answerAccepted, answerStarted } from '../answer/answer-started.js';
import type { RequestContext } from '../request/request-context.js';
import type { ArrivedCall } from './arrived-call.js';
import type { CallPlan } from './call-plan.js';
import { describeCall } from './describe-call.js';
import { idempotencyKey, type WishedJob } from './job-wishes.js';

export interface ArrivedJob extends ArrivedCall {
  readonly job: WishedJob;
}

/** Rejects with the error that refuses the call: SERVE_NOT_KEPT, SERVE_KEY_CONFLICT, SERVE_NOT_READY, SERVE_SHUTTING_DOWN. */
export async function submitJob(context: RequestContext, plan: CallPlan, arrived: ArrivedJob): Promise<void> {
  const { routed, body, opened } = arrived;
  const { model, route } = routed;
  const target = { model, route: route.path };
  if (opened === null) {
    const call = describeCall(context, plan, target, null, body.bytes);
    const accepted = await store(context, plan, arrived, call, body);
    if (route.kind === 'background') answerStarted(context, accepted);
    else answerAccepted(context, accepted);
    return;
  }
  const { input, described } = opened; // the body wraps the input; its dialect answers the client
  const call = { ...describeCall(context, plan, target, null, input.length), ...described };
  const pieces = { pieces: [input], bytes: input.length, release: () => body.release() };
  await opened.answerKept(context, await store(context, plan, arrived, call, pieces));
}

async function store(
  context: RequestContext,
  { target }: CallPlan,
  { routed: { model, route }, opened, place, job }: ArrivedJob,
  call: JobCall,
  body: StoredBody,
): Promise<JobRecord> {
  const noWorker = model.dispatcher.noWorkerError();
  if (noWorker !== null) throw noWorker; // the client can still be answered with it
  const { idempotencyKey: key, ...wishes } = job;
  const { contentType } = call;
  const claimed = { model: model.spec.name, route: route.path, contentType, pieces: body.pieces };
  const accepted = await context.backend.jobs.accept({
    ...wishes,
    call: { ...call, headers: withoutSecrets(call.headers, context.headerNames.keys) },
    body,
    key:
      key === null
        ? null
        : await idempotencyKey(context, { ...claimed, key, keyInBody: opened?.key ?? null }),
    dialect: context.dialect.name,
    hasKey: context.hasKey,
    isBackground: route.kind === 'background',
    webhook: route.webhook,
    isPinned: typeof target === 'object' && target.namesVersion === true,
    maxAttempts: route.attempts,
  });
  place.release();
  return accepted;
}

/** Headers that prove who a client is: they are for this request only, and no store keeps them. */
const SECRETS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie']);

/** `keys`: further headers that contain a key, in lower case. */
function withoutSecrets(lines: string, keys: readonly string[]): string {
  const isSecret = (name: string): boolean => SECRETS.has(name) || keys.includes(name);
  const kept = splitHeaderLines(lines).filter(([name]) => !isSecret(name.toLowerCase()));
  return joinHeaderLines(kept.flat());
}
