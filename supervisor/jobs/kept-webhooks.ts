/**
 * The webhooks that a store of jobs keeps. Those of a process that died are taken from the store from time to time, and
 * handed on to be sent.
 */
import type { Webhook, WebhookKeeper } from '../webhooks/webhook.js';
import type { GuardedStore } from './guarded-store.js';
import type { KeptWebhook } from './job-record.js';

/** Time between two looks. */
const LOOK_MS = 5000;

/** Most webhooks of one look: they share the bounds of those that are sent. */
const MAX_TAKEN = 100;

type Store = Pick<GuardedStore, 'takeWebhooks' | 'owe' | 'forgetWebhook' | 'endWebhook'>;

export class KeptWebhooks implements WebhookKeeper {
  readonly #store: Store;
  readonly #onTaken: (webhook: KeptWebhook) => boolean;
  /** Taken, but there was no room for them: too many others are owed. */
  #waiting: readonly KeptWebhook[] = [];
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** `onTaken` returns false if there is no room for it now. */
  constructor(store: Store, onTaken: (webhook: KeptWebhook) => boolean) {
    this.#store = store;
    this.#onTaken = onTaken;
  }

  /** Takes what other processes left behind, now and from time to time. */
  async start(): Promise<void> {
    const taken = this.#waiting.length > 0 ? this.#waiting : await this.#store.takeWebhooks(MAX_TAKEN);
    if (this.#isClosed) return; // they stay in the store
    this.#waiting = taken.filter((webhook) => !this.#onTaken(webhook));
    this.#timer = setTimeout(() => void this.start(), LOOK_MS).unref();
  }

  owe(webhook: Webhook): Promise<void> {
    return this.#store.owe(webhook);
  }

  forget(id: string): void {
    void this.#store.forgetWebhook(id);
  }

  /** The webhook of this job was delivered or given up. */
  endOf(jobId: string): void {
    void this.#store.endWebhook(jobId);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}
