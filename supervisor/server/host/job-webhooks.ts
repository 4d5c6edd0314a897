/**
 * Posts the ends of jobs to their webhooks, and sends the webhooks that a process that died has left in the store: it looks
 * for those from time to time. One that the store keeps and that finds no room among those that are owed waits without its
 * body until there is some.
 */
import type { AnsweredJob, KeptWebhook } from '../../jobs/kept-jobs.js';
import type { StoreGuard } from '../../jobs/store-guard.js';
import type { Webhook } from '../../webhooks/webhook.js';
import type { Webhooks } from '../../webhooks/webhooks.js';

/** Time between two looks. */
const LOOK_MS = 5000;

/** Most webhooks that are taken at once: their bodies are in memory. */
const MAX_TAKEN = 10;

/** Nothing more is taken while so many wait. */
const MAX_WAITING = 100;

export type WebhookSender = Pick<Webhooks, 'send' | 'isClosed' | 'hasRoomFor' | 'room'>;

export class JobWebhooks {
  readonly #webhooks: WebhookSender;
  readonly #store: StoreGuard | null;
  readonly #waiting: WaitingWebhooks;
  readonly #webhookOf: (job: AnsweredJob) => Webhook | null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** `store`: null if no store keeps webhooks. `webhookOf`: makes the webhook that posts the end of a job; null: none does. */
  constructor(
    webhooks: WebhookSender,
    store: StoreGuard | null,
    webhookOf: (job: AnsweredJob) => Webhook | null,
  ) {
    this.#webhooks = webhooks;
    this.#store = store;
    this.#waiting = new WaitingWebhooks(webhooks);
    this.#webhookOf = webhookOf;
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
    const webhook = this.#webhookOf(job);
    const end = (): void => void store?.untilStored((kept) => kept.endWebhook(record.id));
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
  async #take(store: StoreGuard): Promise<void> {
    for (;;) {
      const limit = Math.min(MAX_TAKEN, this.#webhooks.room);
      if (this.#isClosed || limit === 0 || this.#waiting.count >= MAX_WAITING) return;
      const taken = await store.orNone((kept) => kept.takeWebhooks(limit));
      if (this.#isClosed) return; // they stay in the store
      for (const one of taken) this.#sendTaken(store, one);
      if (taken.length < limit) return;
    }
  }

  #sendTaken(store: StoreGuard, taken: KeptWebhook): void {
    if (taken.of === 'job') {
      this.post(taken);
      return;
    }
    const { webhook } = taken;
    const { url, body } = webhook;
    const send = (): void =>
      this.#send(webhook, () => void store.untilStored((kept) => kept.forgetWebhook(webhook.id)));
    if (this.#hasRoomFor(webhook)) send();
    else this.#waiting.add({ url, bytes: body.length, send: () => Promise.resolve(send()) });
  }

  /** Its result is read from the store again. */
  #waitingJob(store: StoreGuard, { record, call }: AnsweredJob, { url, body }: Webhook): WaitingWebhook {
    const send = async (): Promise<void> => {
      const result =
        record.end.result === null ? null : await store.ask((kept) => kept.readResult(record.id));
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

/** A webhook that the store keeps and for which there is no room among those that are owed. */
interface WaitingWebhook {
  readonly url: string;
  readonly bytes: number;
  /** Reads its body and sends it, or lets it wait again. Rejects if the body cannot be read now. */
  send(): Promise<void>;
}

/** Waiting webhooks, in order for each receiver and without their bodies. A receiver that is down holds up no other. */
class WaitingWebhooks {
  readonly #webhooks: Pick<Webhooks, 'hasRoomFor'>;
  /** By the origins of their receivers; a line without webhooks is removed. */
  readonly #lines = new Map<string, WaitingWebhook[]>();
  #count = 0;
  #isSending = false;
  #isClosed = false;

  constructor(webhooks: Pick<Webhooks, 'hasRoomFor'>) {
    this.#webhooks = webhooks;
  }

  get count(): number {
    return this.#count;
  }

  add(webhook: WaitingWebhook): void {
    const { origin } = new URL(webhook.url);
    const line = this.#lines.get(origin);
    if (line === undefined) this.#lines.set(origin, [webhook]);
    else line.push(webhook);
    this.#count += 1;
  }

  /** Sends those for which there is room by now, one after the other. Never rejects. */
  async send(): Promise<void> {
    if (this.#isSending) return; // it looks again after each
    this.#isSending = true;
    for (let next = this.#next(); next !== null; next = this.#next()) {
      try {
        await next.send();
      } catch {
        this.add(next); // the store fails, and has said so
        break;
      }
    }
    this.#isSending = false;
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Removes one for which there is room. */
  #next(): WaitingWebhook | null {
    if (this.#isClosed) return null;
    for (const [origin, line] of this.#lines) {
      const [first] = line;
      if (first === undefined || !this.#webhooks.hasRoomFor(first.url, first.bytes)) continue;
      line.shift();
      if (line.length === 0) this.#lines.delete(origin);
      this.#count -= 1;
      return first;
    }
    return null;
  }
}
