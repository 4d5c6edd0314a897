/**
 * Posts the ends of jobs to their webhooks, and sends the webhooks that a process that died has left in the store: it looks
 * for those from time to time.
 */
import { ServeError } from '../../protocol/errors.js';
import { errorBody, statusOf } from '../http/answer/house-error.js';
import { isJson } from '../http/call/route-check.js';
import type { AnsweredJob, KeptError, KeptWebhook } from '../jobs/kept-jobs.js';
import type { GuardedStore } from '../jobs/guarded-store.js';
import type { Webhook } from '../webhooks/webhook.js';
import type { Webhooks } from '../webhooks/webhooks.js';

/** Time between two looks. */
const LOOK_MS = 5000;

/** Most webhooks of one look: they share the bounds of those that are sent. */
const MAX_TAKEN = 100;

/** Keeps webhooks until they have ended. */
export type WebhookStore = Pick<GuardedStore, 'endWebhook' | 'forgetWebhook' | 'takeWebhooks'>;

export class JobWebhooks {
  readonly #webhooks: Pick<Webhooks, 'send' | 'isClosed'>;
  readonly #store: WebhookStore | null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** `store`: null if no store keeps webhooks. */
  constructor(webhooks: Pick<Webhooks, 'send' | 'isClosed'>, store: WebhookStore | null) {
    this.#webhooks = webhooks;
    this.#store = store;
  }

  /** Sends what other processes left behind, now and from time to time. */
  async start(): Promise<void> {
    if (this.#store === null) return;
    const taken = await this.#store.takeWebhooks(MAX_TAKEN);
    if (this.#isClosed) return; // they stay in the store
    for (const one of taken) this.#sendTaken(one);
    this.#timer = setTimeout(() => void this.start(), LOOK_MS).unref();
  }

  /** Posts the end of a job that has a webhook. */
  post(job: AnsweredJob): void {
    const webhook = webhookOf(job);
    const end = (): void => void this.#store?.endWebhook(job.record.id);
    if (webhook === null) end();
    else this.#send(webhook, end);
  }

  /** Takes no more. */
  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #sendTaken(taken: KeptWebhook): void {
    if (taken.of === 'job') this.post(taken);
    else this.#send(taken.webhook, () => void this.#store?.forgetWebhook(taken.webhook.id));
  }

  /** `end` removes it from the store; one that the end of the server left unsent, or came too late for, stays there. */
  #send(webhook: Webhook, end: () => void): void {
    const isTaken = this.#webhooks.send(
      { ...webhook, isKept: this.#store !== null },
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
