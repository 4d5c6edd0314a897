/** Posts the ends of jobs to their webhooks, and sends the webhooks that a process that died has left in the store. */
import { ServeError } from '../../protocol/errors.js';
import { errorBody, statusOf } from '../http/answer/house-error.js';
import { isJson } from '../http/call/route-check.js';
import type { AnsweredJob, KeptError, KeptWebhook } from '../jobs/kept-jobs.js';
import type { KeptWebhooks } from '../jobs/kept-webhooks.js';
import type { Webhook } from '../webhooks/webhook.js';
import type { Webhooks } from '../webhooks/webhooks.js';

export class JobWebhooks {
  readonly #webhooks: Pick<Webhooks, 'send' | 'hasRoom' | 'isClosed'>;
  /** Null: no store keeps webhooks. */
  kept: Pick<KeptWebhooks, 'forget' | 'endOf'> | null = null;

  constructor(webhooks: Pick<Webhooks, 'send' | 'hasRoom' | 'isClosed'>) {
    this.#webhooks = webhooks;
  }

  /** Posts the end of a job that has a webhook. */
  post(job: AnsweredJob): void {
    const webhook = webhookOf(job);
    const end = (): void => this.kept?.endOf(job.record.id);
    if (webhook === null) end();
    else this.#send(webhook, end);
  }

  /** Returns false if there is no room for it now. */
  sendTaken(taken: KeptWebhook): boolean {
    const webhook = taken.of === 'job' ? webhookOf(taken) : taken.webhook;
    if (webhook !== null && !this.#webhooks.hasRoom(webhook)) return false;
    if (taken.of === 'job') this.post(taken);
    else this.#send(taken.webhook, () => this.kept?.forget(taken.webhook.id));
    return true;
  }

  /** `end` removes it from the store; one that the end of the server left unsent, or came too late for, stays there. */
  #send(webhook: Webhook, end: () => void): void {
    const isTaken = this.#webhooks.send(
      { ...webhook, isKept: this.kept !== null },
      { onEnd: (how) => how !== 'unsent' && end() },
    );
    if (!isTaken && !this.#webhooks.isClosed) end();
  }
}

/** The error with which a job has ended; null if it succeeded. */
export function errorOf({ record: { end } }: Pick<AnsweredJob, 'record'>): ServeError | null {
  return end.error === null ? null : asServeError(end.error);
}

/**
 * An answer, if it is JSON. A background route's caller has no other place to look for a failure: its webhook gets errors,
 * and answers that are no success, too. Its id is that of the job, whichever process sends it.
 */
function webhookOf({ record, call, body }: AnsweredJob): Webhook | null {
  const { webhook: url, requestId, isBackground } = call;
  const { result } = record.end;
  const base = { id: `msg_${record.id}`, url, requestId };
  const error = errorOf({ record });
  if (error !== null) {
    if (!isBackground) return null;
    const json = Buffer.from(errorBody(error, requestId, { status: statusOf(error) }));
    return { ...base, body: json, contentType: 'application/json' };
  }
  if (body === null || result === null || !isJson(result.head.contentType)) return null;
  const { status, contentType } = result.head;
  return isBackground || status < 300 ? { ...base, body, contentType } : null;
}

function asServeError({ code, message, status, kind, issues }: KeptError): ServeError {
  return new ServeError(code, message, { status, kind, issues });
}
