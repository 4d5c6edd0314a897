/**
 * Posts the ends of jobs to their webhooks, and sends the webhooks that a process that died has left in the store: it looks
 * for those from time to time. One that the store keeps and that finds no room among those that are owed waits without its
 * body until there is some.
 */
import { ServeError } from '../../protocol/errors.js';
import { errorBody, statusOf } from '../http/answer/house-error.js';
import { isJson } from '../http/call/find-route.js';
import type { GuardedStore } from '../jobs/guarded-store.js';
import type { AnsweredJob, KeptError, KeptWebhook } from '../jobs/kept-jobs.js';
import type { Webhook } from '../webhooks/webhook.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { WaitingWebhooks, type WaitingWebhook } from './waiting-webhooks.js';

/** Time between two looks. */
const LOOK_MS = 5000;

/** Most webhooks that are taken at once: their bodies are in memory. */
const MAX_TAKEN = 10;

/** Nothing more is taken while so many wait. */
const MAX_WAITING = 100;

/** Keeps webhooks until they have ended. */
export type WebhookStore = Pick<GuardedStore, 'endWebhook' | 'forgetWebhook' | 'readResult' | 'takeWebhooks'>;

export type WebhookSender = Pick<Webhooks, 'send' | 'isClosed' | 'hasRoomFor' | 'room'>;

export class JobWebhooks {
  readonly #webhooks: WebhookSender;
  readonly #store: WebhookStore | null;
  readonly #waiting: WaitingWebhooks;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** `store`: null if no store keeps webhooks. */
  constructor(webhooks: WebhookSender, store: WebhookStore | null) {
    this.#webhooks = webhooks;
    this.#store = store;
    this.#waiting = new WaitingWebhooks(webhooks);
  }

  /** Sends what other processes left behind and what waits, now and from time to time. */
  async start(): Promise<void> {
    if (this.#store === null) return;
    await this.#waiting.send();
    await this.#take(this.#store);
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.start(), LOOK_MS).unref();
  }

  /** Posts the end of a job that has a webhook. */
  post(job: AnsweredJob): void {
    const { record } = job;
    const store = this.#store;
    const webhook = webhookOf(job);
    const end = (): void => void store?.endWebhook(record.id);
    if (webhook === null) end();
    else if (store === null || record.end.result?.isDropped === true || this.#hasRoomFor(webhook))
      this.#send(webhook, end);
    else this.#waiting.add(this.#waitingJob(store, job, webhook));
  }

  /** Takes no more; what waits stays in the store. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.close();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Takes as many as there is room for. */
  async #take(store: WebhookStore): Promise<void> {
    for (;;) {
      const limit = Math.min(MAX_TAKEN, this.#webhooks.room);
      if (this.#isClosed || limit === 0 || this.#waiting.count >= MAX_WAITING) return;
      const taken = await store.takeWebhooks(limit);
      if (this.#isClosed) return; // they stay in the store
      for (const one of taken) this.#sendTaken(store, one);
      if (taken.length < limit) return;
    }
  }

  #sendTaken(store: WebhookStore, taken: KeptWebhook): void {
    if (taken.of === 'job') {
      this.post(taken);
      return;
    }
    const { webhook } = taken;
    const { url, body } = webhook;
    const send = (): void => this.#send(webhook, () => void store.forgetWebhook(webhook.id));
    if (this.#hasRoomFor(webhook)) send();
    else this.#waiting.add({ url, bytes: body.length, send: () => Promise.resolve(send()) });
  }

  /** Its result is read from the store again. */
  #waitingJob(store: WebhookStore, { record, call }: AnsweredJob, { url, body }: Webhook): WaitingWebhook {
    const send = async (): Promise<void> => {
      const result = record.end.result === null ? null : await store.readResult(record.id);
      if (!this.#isClosed) this.post({ record, call, body: result });
    };
    return { url, bytes: body.length, send };
  }

  #hasRoomFor({ url, body }: Webhook): boolean {
    return this.#webhooks.isClosed || this.#webhooks.hasRoomFor(url, body.length);
  }

  /** `end` removes it from the store; one that the end of the server left unsent, or came too late for, stays there. */
  #send(webhook: Webhook, end: () => void): void {
    const isTaken = this.#webhooks.send(
      { ...webhook, isKept: this.#store !== null },
      {
        onEnd: (how) => {
          if (how !== 'unsent') end();
          void this.#waiting.send();
        },
      },
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
