/** Makes the record of a job from the call that a client asks to be kept. */
import type { CallMessage } from '../dispatch/call.js';
import type { IdempotencyKey, JobRecord, NewJob, StoredBody, StoredCall } from './job-record.js';

/** The wishes of a job's client, and the promises of its route. */
export interface JobWishes {
  readonly delayMs: number;
  readonly ttlMs: number;
  readonly priority: number;
  readonly key: IdempotencyKey | null;
}

/** A call to be kept, and facts that are not in the call. */
export interface AcceptedCall
  extends
    JobWishes,
    Pick<StoredCall, 'dialect' | 'hasKey' | 'isBackground' | 'webhook'>,
    Pick<JobRecord, 'isPinned' | 'maxAttempts'> {
  readonly call: CallMessage;
  /** Belongs to the store once the call is accepted as a new job. */
  readonly body: StoredBody;
}

export function newJob(id: string, accepted: AcceptedCall): NewJob {
  const { call, body, delayMs, ttlMs, priority, key, isPinned, maxAttempts, ...facts } = accepted;
  const { requestId, model, version, route } = call;
  const createdAt = Date.now();
  const hasWebhook = facts.webhook !== '';
  const wishes = { dueAt: createdAt + delayMs, ttlMs, priority, maxAttempts, hasWebhook };
  const record = { id, requestId, model, version, isPinned, route, createdAt, ...wishes, ...NEW };
  const { id: _id, statusOf: _statusOf, ...data } = call;
  return { record, call: { ...data, ...facts }, body, key };
}

const NEW = {
  state: 'queued',
  attempts: 0,
  losses: 0,
  begunAt: null,
  isCancelled: false,
  progress: null,
  end: null,
} as const;
