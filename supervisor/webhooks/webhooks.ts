/**
 * Every webhook this server owes: taken at once, sent in the background, so that no caller and no worker waits for
 * a receiver, and the death of a worker loses none.
 *
 * 1. `send` takes it, or drops it when too much is owed already.
 * 2. A receiver (an origin) has a queue and a few attempts at a time: one that hangs holds up its own only.
 * 3. What failed and may be tried again waits aside (`retry-delay.ts`) and then queues anew.
 * 4. `drain` gives what is owed a last while; the rest is reported. One log line for each that was not delivered.
 */
import { randomUUID } from 'node:crypto';
import { MAX_WEBHOOK_RETRIES, MAX_WEBHOOK_TIMEOUT_MS } from '../../protocol/messages.js';
import { DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS, parseWebhookUrl } from '../../protocol/webhooks.js';
import type { Log } from '../observe/log.js';
import { formatBytes } from '../options/units.js';
import { VERSION } from '../version.js';
import { HttpDelivery, type Delivery } from './deliver.js';
import { nextStep } from './retry-delay.js';
import type { WebhookSigner } from './sign.js';

export interface Webhook {
  /** Names it over all retries, for receivers that want each one once. Printable ASCII without a dot; unique. */
  readonly id: string;
  /** http: or https:. Its user and password become an Authorization header. */
  readonly url: string;
  /** Copied by `send`: the caller may use the memory again. */
  readonly body: Uint8Array;
  /** Empty: `application/json`. */
  readonly contentType: string;
  /** The call it belongs to; empty if none. */
  readonly requestId: string;
  /** For one attempt, at most 60 s; 10 s if left out. */
  readonly timeoutMs?: number;
  /** Attempts after the first, at most 10; 3 if left out. */
  readonly retries?: number;
}

/** `unsent`: the server stopped first. */
export type WebhookEnd = 'delivered' | 'failed' | 'unsent';

export interface UnsentWebhook {
  readonly id: string;
  /** Without credentials and query. */
  readonly url: string;
  readonly requestId: string;
  readonly attempts: number;
}

export interface WebhooksOptions {
  readonly log: Pick<Log, 'debug' | 'warn'>;
  /** Null: not signed. */
  readonly signer: WebhookSigner | null;
  readonly limits?: Partial<WebhookLimits>;
  /** For tests: how attempts are made, what time it is, what chance says. */
  readonly delivery?: Delivery;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface WebhookLimits {
  /** Owed at a time, half of them to one receiver; more are dropped. */
  readonly maxOwed: number;
  /** Of bodies owed, likewise; a single one may take all of it, so an answer of the default --max-output fits. */
  readonly maxOwedBytes: number;
  readonly perReceiver: number;
  /** Attempts at a time over all receivers: each is an open file. */
  readonly atOnce: number;
}

export interface Clock {
  /** Since the epoch. */
  now(): number;
  /** Calls back after `ms`, unless the returned function is called before. */
  after(ms: number, callback: () => void): () => void;
}

const LIMITS: WebhookLimits = {
  maxOwed: 1024,
  maxOwedBytes: 128 * 1024 ** 2,
  perReceiver: 8,
  atOnce: 128,
};

const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

interface Owed extends Required<Omit<Webhook, 'url'>> {
  readonly url: URL;
  readonly receiver: Receiver;
  readonly onEnd: (end: WebhookEnd) => void;
  attempts: number;
  why: string;
  /** Waiting for its next attempt. */
  retry: { readonly atMs: number; readonly cancel: () => void } | null;
}

/** Known while something is owed to it. */
interface Receiver {
  readonly origin: string;
  readonly queue: Owed[];
  running: number;
  owed: number;
  owedBytes: number;
}

export class Webhooks {
  readonly #log: WebhooksOptions['log'];
  readonly #signer: WebhookSigner | null;
  readonly #limits: WebhookLimits;
  readonly #delivery: Delivery;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #owed = new Set<Owed>();
  #owedBytes = 0;
  readonly #receivers = new Map<string, Receiver>();
  #running = 0;
  readonly #unsent: UnsentWebhook[] = [];
  #drain: { readonly endsAtMs: number; readonly done: () => void } | null = null;
  #closed = false;

  constructor(options: WebhooksOptions) {
    this.#log = options.log;
    this.#signer = options.signer;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#delivery = options.delivery ?? new HttpDelivery();
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#random = options.random ?? Math.random;
  }

  /** Taken and neither delivered nor given up. */
  get owed(): number {
    return this.#owed.size;
  }

  /**
   * Takes a webhook and returns true at once; `onEnd` is called once, later. Returns false if it was dropped (too
   * much is owed, the server has stopped, the URL is none), which the log says; then `onEnd` is never called.
   */
  send(webhook: Webhook, onEnd: (end: WebhookEnd) => void = () => {}): boolean {
    const problem = this.#problemWith(webhook);
    if (problem !== null) {
      this.#report(facts(webhook, shownUrl(webhook.url), 0), `was not sent: ${problem}`);
      return false;
    }
    const owed: Owed = {
      ...webhook,
      timeoutMs: Math.min(MAX_WEBHOOK_TIMEOUT_MS, Math.max(1, webhook.timeoutMs ?? DEFAULT_TIMEOUT_MS)),
      retries: Math.min(MAX_WEBHOOK_RETRIES, webhook.retries ?? DEFAULT_RETRIES),
      url: new URL(webhook.url),
      body: Buffer.from(webhook.body),
      receiver: this.#receiver(new URL(webhook.url).origin),
      onEnd,
      attempts: 0,
      why: '',
      retry: null,
    };
    this.#owed.add(owed);
    this.#count(owed, 1);
    this.#queue(owed);
    return true;
  }

  /** Resolves once nothing is owed, or after `limitMs`, with what was not sent then. Ends in `close`. */
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

  /** Gives up what is owed, at once, and reports it. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const owed of [...this.#owed]) this.#giveUpUnsent(owed);
    this.#delivery.close();
    this.#drain?.done();
  }

  #problemWith({ url, body }: Webhook): string | null {
    if (this.#closed) return 'the server has stopped';
    try {
      parseWebhookUrl(url);
    } catch (thrown) {
      return (thrown as TypeError).message;
    }
    const { maxOwed, maxOwedBytes } = this.#limits;
    const all = { owed: this.#owed.size, owedBytes: this.#owedBytes };
    const itsOwn = this.#receivers.get(new URL(url).origin) ?? NONE;
    return (
      excess(body.length, all, maxOwed, maxOwedBytes, '') ??
      (itsOwn.owed === 0
        ? null // the first may be as large as all of it
        : excess(body.length, itsOwn, maxOwed / 2, maxOwedBytes / 2, ' to this receiver'))
    );
  }

  #receiver(origin: string): Receiver {
    let receiver = this.#receivers.get(origin);
    if (receiver === undefined) {
      receiver = { origin, queue: [], running: 0, owed: 0, owedBytes: 0 };
      this.#receivers.set(origin, receiver);
    }
    return receiver;
  }

  /** One more, or one less. */
  #count({ receiver, body }: Owed, change: 1 | -1): void {
    receiver.owed += change;
    receiver.owedBytes += change * body.length;
    this.#owedBytes += change * body.length;
    if (receiver.owed === 0) this.#receivers.delete(receiver.origin);
  }

  #queue(owed: Owed): void {
    owed.receiver.queue.push(owed);
    this.#startNext(owed.receiver);
  }

  #startNext(receiver: Receiver): void {
    const { perReceiver, atOnce } = this.#limits;
    while (receiver.running < perReceiver && this.#running < atOnce) {
      const owed = receiver.queue.shift();
      if (owed === undefined) return;
      void this.#attempt(owed);
    }
  }

  async #attempt(owed: Owed): Promise<void> {
    const { receiver } = owed;
    receiver.running += 1;
    this.#running += 1;
    owed.attempts += 1;
    const attempt = await this.#delivery.attempt(owed.url, this.#headers(owed), owed.body, owed.timeoutMs);
    receiver.running -= 1;
    this.#running -= 1;
    if (this.#closed) return;
    const nowMs = this.#clock.now();
    const next = nextStep(attempt, owed.attempts, owed.retries, nowMs, this.#random());
    if (next.action === 'retry') this.#retryLater(owed, next.delayMs, next.why);
    else if (next.action === 'give up') this.#fail(owed, next.why);
    else this.#delivered(owed);
    this.#fillPlaces(receiver);
  }

  /** A place is free. If all were taken, receivers get it in turn: the one that had it goes behind the others. */
  #fillPlaces(receiver: Receiver): void {
    if (this.#running === this.#limits.atOnce - 1) {
      if (this.#receivers.delete(receiver.origin)) this.#receivers.set(receiver.origin, receiver);
      for (const next of this.#receivers.values()) {
        this.#startNext(next);
        if (this.#running >= this.#limits.atOnce) return;
      }
    }
    this.#startNext(receiver);
  }

  #headers({ id, body, contentType, requestId }: Owed): Record<string, string> {
    const timestampS = Math.floor(this.#clock.now() / 1000);
    const isNamed = isHeaderValue(requestId);
    return {
      'content-type': isHeaderValue(contentType) ? contentType : 'application/json',
      'user-agent': `banana-serve/${VERSION}`,
      'webhook-id': id,
      'webhook-timestamp': String(timestampS),
      ...(this.#signer === null ? {} : { 'webhook-signature': this.#signer.sign(id, timestampS, body) }),
      ...(isNamed ? { 'x-banana-request-id': requestId, 'x-request-id': requestId } : {}),
    };
  }

  #retryLater(owed: Owed, delayMs: number, why: string): void {
    owed.why = why;
    const atMs = this.#clock.now() + delayMs;
    if (this.#drain !== null && atMs >= this.#drain.endsAtMs) {
      this.#giveUpUnsent(owed);
      return;
    }
    const cancel = this.#clock.after(delayMs, () => {
      owed.retry = null;
      this.#queue(owed);
    });
    owed.retry = { atMs, cancel };
    this.#log.debug(this.#factsOf(owed), `Webhook to ${shownUrl(owed.url)} failed with ${why}; trying again`);
  }

  #delivered(owed: Owed): void {
    this.#log.debug(this.#factsOf(owed), `Webhook to ${shownUrl(owed.url)} was delivered`);
    this.#end(owed, 'delivered');
  }

  #fail(owed: Owed, why: string): void {
    this.#report(this.#factsOf(owed), `failed with ${why} (${attemptsText(owed.attempts)})`);
    this.#end(owed, 'failed');
  }

  #giveUpUnsent(owed: Owed): void {
    const { id, requestId, attempts, why } = owed;
    const tried =
      attempts === 0 ? '' : ` after ${attemptsText(attempts)}${why === '' ? '' : `, the last with ${why}`}`;
    this.#report(this.#factsOf(owed), `was not sent: the server stopped${tried}`);
    this.#unsent.push({ id, url: shownUrl(owed.url), requestId, attempts });
    this.#end(owed, 'unsent');
  }

  #end(owed: Owed, end: WebhookEnd): void {
    owed.retry?.cancel();
    this.#owed.delete(owed);
    this.#count(owed, -1);
    owed.onEnd(end);
    if (this.#owed.size === 0) this.#drain?.done();
  }

  #factsOf(owed: Owed): WebhookFacts {
    return facts(owed, shownUrl(owed.url), owed.attempts);
  }

  #report(about: WebhookFacts, what: string): void {
    this.#log.warn(about, `Webhook to ${about.url} ${what}`);
  }
}

interface Amount {
  readonly owed: number;
  readonly owedBytes: number;
}

const NONE: Amount = { owed: 0, owedBytes: 0 };

/** Why one more is too much; null if it is not. */
function excess(
  bytes: number,
  { owed, owedBytes }: Amount,
  max: number,
  maxBytes: number,
  to: string,
): string | null {
  if (owed >= max) return `${owed} others${to} are still to be delivered`;
  if (owedBytes + bytes <= maxBytes) return null;
  return `with its ${formatBytes(bytes)}, more than ${formatBytes(maxBytes)}${to} would be waiting for delivery`;
}

interface WebhookFacts {
  readonly webhookId: string;
  readonly url: string;
  readonly requestId: string | undefined;
  readonly attempts: number;
}

/** An id for a webhook that has none of its own. */
export function newWebhookId(): string {
  return `msg_${randomUUID()}`;
}

function facts(
  { id, requestId }: Pick<Webhook, 'id' | 'requestId'>,
  url: string,
  attempts: number,
): WebhookFacts {
  return { webhookId: id, url, requestId: requestId === '' ? undefined : requestId, attempts };
}

/** As the log may have it: credentials and tokens stand before the host and in the query. */
function shownUrl(url: string | URL): string {
  if (typeof url === 'string' && !URL.canParse(url)) return '(no URL)';
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function attemptsText(attempts: number): string {
  return attempts === 1 ? '1 attempt' : `${attempts} attempts`;
}

/** Visible ASCII, of a length that no receiver minds. */
function isHeaderValue(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]{0,500}[\x21-\x7e])?$/.test(text);
}
