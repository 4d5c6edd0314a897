/**
 * Posts the begins and ends of jobs to their webhooks, and sends the webhooks that a process that died has left in the store: it looks
 * for those from time to time. One that the store keeps and that finds no room among those that are owed waits without its
 * body until there is some.
 */
import type { AnsweredJob, BegunJob, KeptWebhook, PostedJob } from './job-record.js';
import type { StoreGuard } from './store-guard.js';
import type { Webhook, WebhookKeeper, Webhooks } from '../webhooks/webhooks.js';

/** Time between two looks. */
const LOOK_MS = 5000;

/** Most webhooks that are taken at once: their bodies are in memory. */
const MAX_TAKEN = 10;

/** Nothing more is taken while so many wait. */
const MAX_WAITING = 100;

/** A webhook that the store keeps and for which there is no room among those that are owed. */
interface WaitingWebhook {
  readonly url: string;
  readonly bytes: number;
  /** Reads its body and sends it, or lets it wait again. Rejects if the body cannot be read now. */
  send(): Promise<void>;
}

export class JobWebhooks {
  readonly #webhooks: Webhooks;
  readonly #store: StoreGuard | null;
  readonly #webhookOf: (job: PostedJob) => Webhook | null;
  /**
   * Waiting webhooks by the origins of their receivers, in order and without their bodies; a line without webhooks is
   * removed. A receiver that is down holds up no other.
   */
  readonly #lines = new Map<string, WaitingWebhook[]>();
  #isSending = false;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** `store`: null if no store keeps webhooks. `webhookOf`: makes the webhook that posts the begin or the end of a job; null: none does. */
  constructor(webhooks: Webhooks, store: StoreGuard | null, webhookOf: (job: PostedJob) => Webhook | null) {
    this.#webhooks = webhooks;
    this.#store = store;
    this.#webhookOf = webhookOf;
  }

  /** Sends what other processes left behind and what waits, now and from time to time. */
  async start(): Promise<void> {
    if (this.#store === null) return;
    await this.#sendWaiting();
    await this.#take(this.#store);
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.start(), LOOK_MS).unref();
  }

  /** Posts the begin of a job that has a webhook. */
  postBegin({ record, call }: BegunJob): void {
    const webhook = this.#webhookOf({ record, call, body: null });
    if (webhook !== null) this.#webhooks.send(webhook);
  }

  /** Posts the end of a job that has a webhook. The result of one that waits is read from the store again. */
  post(job: AnsweredJob): void {
    const { record, call } = job;
    const store = this.#store;
    const webhook = this.#webhookOf(job);
    const end = (): void => void store?.untilStored((kept) => kept.endWebhook(record.id));
    if (webhook === null) end();
    else if (store === null || record.end.result?.isDropped === true) this.#send(webhook, end);
    else
      this.#sendOrWait(webhook, end, async () => {
        const body =
          record.end.result === null ? null : await store.ask((kept) => kept.readResult(record.id));
        if (!this.#isClosed) this.post({ record, call, body });
      });
  }

  /** Takes no more; what waits stays in the store. */
  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Takes as many as there is room for. */
  async #take(store: StoreGuard): Promise<void> {
    for (;;) {
      const limit = Math.min(MAX_TAKEN, this.#webhooks.room);
      const waiting = [...this.#lines.values()].flat().length;
      if (this.#isClosed || limit === 0 || waiting >= MAX_WAITING) return;
      const taken = await store.orNone((kept) => kept.takeWebhooks(limit));
      if (this.#isClosed) return; // they stay in the store
      for (const one of taken) this.#sendTaken(store, one);
      if (taken.length < limit) return;
    }
  }

  #sendTaken(store: StoreGuard, taken: KeptWebhook): void {
    if (taken.of === 'job') return this.post(taken);
    const { webhook } = taken;
    const end = (): void => void store.untilStored((kept) => kept.forgetWebhook(webhook.id));
    this.#sendOrWait(webhook, end, () => Promise.resolve(this.#send(webhook, end)));
  }

  /** `again`: sends it once there is room. */
  #sendOrWait(webhook: Webhook, end: () => void, again: WaitingWebhook['send']): void {
    const { url, body } = webhook;
    if (this.#webhooks.isClosed || this.#webhooks.hasRoomFor(url, body.length)) this.#send(webhook, end);
    else this.#wait({ url, bytes: body.length, send: again });
  }

  /** `end` removes it from the store; one that the end of the server left unsent, or came too late for, stays there. */
  #send(webhook: Webhook, end: () => void): void {
    const isTaken = this.#webhooks.send(
      { ...webhook, isKept: this.#store !== null },
      {
        onEnd: (how) => {
          if (how !== 'unsent') end();
          void this.#sendWaiting();
        },
      },
    );
    if (!isTaken && !this.#webhooks.isClosed) end();
  }

  #wait(webhook: WaitingWebhook): void {
    const { origin } = new URL(webhook.url);
    const line = this.#lines.get(origin);
    if (line === undefined) this.#lines.set(origin, [webhook]);
    else line.push(webhook);
  }

  /** Sends those for which there is room by now, one after the other. Never rejects. */
  async #sendWaiting(): Promise<void> {
    if (this.#isSending) return; // it looks again after each
    this.#isSending = true;
    for (let next = this.#next(); next !== null; next = this.#next()) {
      try {
        await next.send();
      } catch {
        this.#wait(next); // the store fails, and has said so
        break;
      }
    }
    this.#isSending = false;
  }

  /** Removes a waiting webhook for which there is room. */
  #next(): WaitingWebhook | null {
    if (this.#isClosed) return null;
    for (const [origin, line] of this.#lines) {
      const [first] = line;
      if (first === undefined || !this.#webhooks.hasRoomFor(first.url, first.bytes)) continue;
      line.shift();
      if (line.length === 0) this.#lines.delete(origin);
      return first;
    }
    return null;
  }
}

/** Keeps the webhooks of apps in the store. */
export function keeperOf(guard: StoreGuard): WebhookKeeper {
  return {
    owe: (webhook) => guard.ask((store) => store.owe(webhook)),
    forgetWebhook: (id) => guard.untilStored((store) => store.forgetWebhook(id)),
  };
}
