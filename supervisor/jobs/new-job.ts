/** Makes the record of a job from the call that a client asks to be kept. */
import type { CallMessage } from '../dispatch/call.js';
import type { JobRecord, NewJob, StoredBody, StoredCall } from './job-record.js';

/** A call to be kept, and facts that are not in the call: wishes of its client, and promises of its route. */
export interface AcceptedCall
  extends
    Pick<NewJob, 'key'>,
    Pick<StoredCall, 'dialect' | 'hasKey' | 'isBackground' | 'webhook'>,
    Pick<JobRecord, 'isPinned' | 'maxAttempts' | 'priority' | 'ttlMs'> {
  readonly delayMs: number;
  readonly call: CallMessage;
  /** Belongs to the store once the call is accepted as a new job. */
  readonly body: StoredBody;
}

export function newJob(id: string, accepted: AcceptedCall): NewJob {
  const { call, body, key, dialect, hasKey, isBackground, webhook } = accepted;
  const { delayMs, ttlMs, priority, isPinned, maxAttempts } = accepted;
  const { requestId, model, version, route, client, method, path, query, headers, dialectParams } = call;
  const { format, contentType, bodyBytes, params, accept, answer, asciiJson, deadlineMs } = call;
  const createdAt = Date.now();
  const hasWebhook = webhook !== '';
  const wishes = { dueAt: createdAt + delayMs, ttlMs, priority, maxAttempts, hasWebhook };
  // Spread last: to put more than a few properties behind a spread takes 5 us.
  const record = { id, requestId, model, version, isPinned, route, createdAt, ...wishes, ...NEW };
  const request = { method, path, query, headers, format, contentType, bodyBytes, params };
  const reply = { accept, answer, asciiJson, deadlineMs, dialect, dialectParams, webhook };
  const stored = { requestId, model, version, route, client, hasKey, isBackground, ...request, ...reply };
  return { record, call: stored, body, key };
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
