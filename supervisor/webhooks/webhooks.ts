/**
 * Delivers webhooks. They are accepted at once and sent in the background, so that no caller and no worker waits for a
 * receiver, and the death of a worker loses none. An accepted webhook is owed until it is delivered or given up.
 *
 * 1. `send` accepts a webhook, or drops it if too many are owed already. With a keeper it is also stored until its end.
 * 2. It waits in the queue of its receiver (`receivers.ts`), which gets a few attempts at a time.
 * 3. After a failure that may be retried it waits for a delay (`retry-delay.ts`) and then queues again.
 * 4. `drain` waits a limited time for owed webhooks and returns the rest. Each undelivered one has a line in the log.
 */
import { describeThrown } from '../../protocol/errors.js';
import { MAX_WEBHOOK_RETRIES, MAX_WEBHOOK_TIMEOUT_MS } from '../../protocol/wire/messages.js';
import { DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS, parseWebhookUrl } from '../../protocol/webhooks.js';
import type { Log } from '../observe/log.js';
import type { WebhookSigner } from '../options/webhook-signer.js';
import { VERSION } from '../version.js';
import { HttpDelivery, type Delivery } from './deliver.js';
import { Receivers, type ReceiverLimits } from './receivers.js';
import { nextStep } from './retry-delay.js';
import type { UnsentWebhook, Webhook, WebhookEnd, WebhookEvents, WebhookKeeper } from './webhook.js';
import { WebhookLog, shownUrl } from './webhook-log.js';

/** The clock for attempts, replaced in tests. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back after `ms`, unless the returned function is called before. */
  after(ms: number, callback: () => void): () => void;
}

export interface WebhooksOptions {
  readonly log: Pick<Log, 'debug' | 'warn'>;
  /** Signs each attempt; null if webhooks are not signed. */
  readonly signer: WebhookSigner | null;
  /** Absent or null: webhooks are held in memory only. */
  readonly keeper?: WebhookKeeper | null;
  readonly limits?: Partial<ReceiverLimits>;
  /** For tests: delivery, clock and random numbers. */
  readonly delivery?: Delivery;
  readonly clock?: Clock;
  readonly random?: () => number;
}

const LIMITS: ReceiverLimits = {
  maxOwed: 1024,
  maxOwedBytes: 128 * 1024 ** 2,
  perReceiver: 8,
  atOnce: 128,
};

interface Owed extends Required<Omit<Webhook, 'url'>> {
  readonly url: URL;
  readonly onEnd: (end: WebhookEnd) => void;
  /** Resolves with whether the keeper may have it, once it has answered. */
  kept: Promise<boolean>;
  attempts: number;
  why: string;
  /** Set while it waits for its next attempt. */
  retry: { readonly atMs: number; readonly cancel: () => void } | null;
}

export class Webhooks {
  readonly #log: WebhookLog;
  readonly #signer: WebhookSigner | null;
  readonly #delivery: Delivery;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #owed = new Set<Owed>();
  readonly #receivers: Receivers<Owed>;
  readonly #unsent: UnsentWebhook[] = [];
  readonly #keeper: WebhookKeeper | null;
  #drain: { readonly endsAtMs: number; readonly done: () => void } | null = null;
  #closed = false;

  constructor(options: WebhooksOptions) {
    this.#log = new WebhookLog(options.log);
    this.#signer = options.signer;
    this.#keeper = options.keeper ?? null;
    this.#receivers = new Receivers({ ...LIMITS, ...options.limits }, (owed) => void this.#attempt(owed));
    this.#delivery = options.delivery ?? new HttpDelivery();
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#random = options.random ?? Math.random;
  }

  /** Whether the server has stopped, so that none is accepted any more. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Number of webhooks that are neither delivered nor given up. */
  get owed(): number {
    return this.#owed.size;
  }

  /** Number of small webhooks that `send` would accept now, if they are for several receivers. */
  get room(): number {
    return this.#closed ? 0 : this.#receivers.room;
  }

  /** Whether `send` would not refuse it because of others that are owed. */
  hasRoomFor(url: string, bytes: number): boolean {
    return (
      this.#owed.size === 0 || !URL.canParse(url) || this.#receivers.excess(new URL(url), bytes) === null
    );
  }

  /**
   * Accepts a webhook and returns true at once. Returns false if it was dropped (too many are owed, the server has stopped,
   * the URL is not valid), which is logged; then no event follows.
   */
  send(webhook: Webhook, { onKept = () => {}, onEnd = () => {} }: Partial<WebhookEvents> = {}): boolean {
    if (this.#closed) {
      this.#log.unsent({ ...webhook, attempts: 0, why: '' }, webhook.isKept === true);
      return false;
    }
    const problem = this.#problemWith(webhook);
    if (problem !== null) {
      this.#log.refused(webhook, problem);
      return false;
    }
    const owed: Owed = {
      ...webhook,
      timeoutMs: Math.min(MAX_WEBHOOK_TIMEOUT_MS, Math.max(1, webhook.timeoutMs ?? DEFAULT_TIMEOUT_MS)),
      retries: Math.min(MAX_WEBHOOK_RETRIES, webhook.retries ?? DEFAULT_RETRIES),
      url: new URL(webhook.url),
      body: Buffer.from(webhook.body),
      isKept: webhook.isKept ?? false,
      kept: NOT_KEPT,
      onEnd,
      attempts: 0,
      why: '',
      retry: null,
    };
    this.#owed.add(owed);
    if (this.#keeper === null || owed.isKept) onKept();
    else owed.kept = this.#keep(owed, this.#keeper).finally(onKept);
    this.#receivers.add(owed);
    return true;
  }

  /** Resolves once nothing is owed, or after `limitMs`, with the unsent webhooks. Then it calls `close`. */
  async drain(limitMs: number): Promise<readonly UnsentWebhook[]> {
    if (this.#closed) return this.#unsent;
    const endsAtMs = this.#clock.now() + limitMs;
    for (const owed of [...this.#owed]) {
      if (owed.retry !== null && owed.retry.atMs >= endsAtMs) this.#giveUpUnsent(owed);
    }
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(Math.max(0, limitMs), resolve);
      const done = (): void => {
        cancel();
        resolve();
      };
      this.#drain = { endsAtMs, done };
      if (this.#owed.size === 0) done();
    });
    this.close();
    return this.#unsent;
  }

  /** Gives up all owed webhooks at once and logs them. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const owed of [...this.#owed]) this.#giveUpUnsent(owed);
    this.#delivery.close();
    this.#drain?.done();
  }

  #problemWith({ url, body }: Webhook): string | null {
    try {
      parseWebhookUrl(url);
    } catch (thrown) {
      return (thrown as TypeError).message;
    }
    return this.#receivers.excess(new URL(url), body.length);
  }

  /** Stores it; a store that fails does not keep it from being sent. */
  async #keep(owed: Owed, keeper: WebhookKeeper): Promise<boolean> {
    try {
      const { id, url, body, contentType, requestId, timeoutMs, retries } = owed;
      await keeper.owe({ id, url: url.href, body, contentType, requestId, timeoutMs, retries });
    } catch (thrown) {
      this.#log.notKept(owed, describeThrown(thrown).message);
    }
    return true; // a keeper whose answer was lost has it
  }

  async #attempt(owed: Owed): Promise<void> {
    owed.attempts += 1;
    const headers = webhookHeaders(owed, this.#signer, this.#clock.now());
    const attempt = await this.#delivery.attempt(owed.url, headers, owed.body, owed.timeoutMs);
    if (this.#closed) return;
    this.#receivers.leave(owed);
    const next = nextStep(attempt, owed.attempts, owed.retries, this.#clock.now(), this.#random());
    if (next.action === 'delivered') {
      this.#log.delivered(owed);
      this.#end(owed, 'delivered');
      return;
    }
    owed.why = next.why;
    if (next.action === 'retry') {
      this.#retryLater(owed, next.delayMs);
      return;
    }
    this.#log.failed(owed);
    this.#end(owed, 'failed');
  }

  #retryLater(owed: Owed, delayMs: number): void {
    const atMs = this.#clock.now() + delayMs;
    if (this.#drain !== null && atMs >= this.#drain.endsAtMs) {
      this.#giveUpUnsent(owed);
      return;
    }
    const cancel = this.#clock.after(delayMs, () => {
      owed.retry = null;
      this.#receivers.queue(owed);
    });
    owed.retry = { atMs, cancel };
    this.#log.retrying(owed);
  }

  #giveUpUnsent(owed: Owed): void {
    const { id, url, requestId, attempts } = owed;
    this.#log.unsent(owed, this.#keeper !== null);
    this.#unsent.push({ id, url: shownUrl(url), requestId, attempts });
    this.#end(owed, 'unsent');
  }

  #end(owed: Owed, end: WebhookEnd): void {
    owed.retry?.cancel();
    this.#owed.delete(owed);
    this.#receivers.remove(owed);
    if (end !== 'unsent')
      void owed.kept.then((isKept) => (isKept ? this.#keeper?.forgetWebhook(owed.id) : undefined));
    owed.onEnd(end);
    if (this.#owed.size === 0) this.#drain?.done();
  }
}

const NOT_KEPT = Promise.resolve(false);

const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Headers of an attempt at `nowMs` since the epoch, signed anew for each attempt; values that are not valid in a header are left out. `signer` null: not signed. */
function webhookHeaders(
  { id, body, contentType, requestId }: Pick<Webhook, 'id' | 'body' | 'contentType' | 'requestId'>,
  signer: WebhookSigner | null,
  nowMs: number,
): Record<string, string> {
  const timestampS = Math.floor(nowMs / 1000);
  const isNamed = isHeaderValue(requestId);
  return {
    'content-type': isHeaderValue(contentType) ? contentType : 'application/json',
    'user-agent': `banana-serve/${VERSION}`,
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    ...(signer === null ? {} : { 'webhook-signature': signer(id, timestampS, body) }),
    ...(isNamed ? { 'x-banana-request-id': requestId, 'x-request-id': requestId } : {}),
  };
}

/** Whether the text is visible ASCII of at most 502 characters. */
function isHeaderValue(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]{0,500}[\x21-\x7e])?$/.test(text);
}
