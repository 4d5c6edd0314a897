/**
 * Delivers webhooks. They are accepted at once and sent in the background, so that no caller and no worker waits for a
 * receiver, and the death of a worker loses none. An accepted webhook is owed until it is delivered or given up.
 *
 * 1. `send` accepts a webhook, or drops it if too many are owed already. With a keeper it is also stored until its end.
 * 2. It waits in the queue of its receiver (`receivers.ts`), which gets a few attempts at a time.
 * 3. After a failure that may be retried it waits for a delay (`deliver.ts`) and then queues again.
 * 4. `drain` waits a limited time for owed webhooks. Each undelivered one has a line in the log, at level warn; all else is
 *    at level debug.
 */
import { randomUUID } from 'node:crypto';
import { describeThrown } from '../../protocol/errors.js';
import { asClause } from '../../protocol/text/sentences.js';
import { MAX_WEBHOOK_RETRIES, MAX_WEBHOOK_TIMEOUT_MS } from '../../protocol/wire/limits.js';
import { DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS, parseWebhookUrl } from '../../protocol/webhooks.js';
import type { Log } from '../observe/log.js';
import type { WebhookSigner } from '../options/secrets.js';
import { VERSION } from '../version.js';
import { HttpDelivery, nextStep } from './deliver.js';
import { Receivers, type RECEIVER_LIMITS } from './receivers.js';

/** A webhook to send. */
export interface Webhook {
  /** Unique id, equal in all retries, so that receivers can ignore repetitions. Printable ASCII without a dot. */
  readonly id: string;
  /** http: or https:. Its user and password become an Authorization header. */
  readonly url: string;
  /** `send` copies the body, so the caller may reuse the memory. */
  readonly body: Uint8Array;
  /** Content type of the body; empty means `application/json`. */
  readonly contentType: string;
  /** Id of the call of the webhook; empty if there is none. */
  readonly requestId: string;
  /** Time limit of one attempt, at most 60 s; default 10 s. */
  readonly timeoutMs?: number;
  /** Number of attempts after the first, at most 10; default 3. */
  readonly retries?: number;
  /** Whether a store keeps it already, from which its sender removes it; default false. */
  readonly isKept?: boolean;
}

/** Keeps owed webhooks outside this process: another one sends them if this one dies. */
export interface WebhookKeeper {
  /** Resolves once it is stored. May reject. */
  owe(webhook: Webhook): Promise<void>;
  /** Removes a webhook that was delivered or given up. Never rejects. */
  forgetWebhook(id: string): Promise<void>;
}

export interface WebhookEvents {
  /** Called once, when it is stored as safely as this server can; before `send` returns if nothing is stored. */
  onKept(): void;
  /** Called once, later. */
  onEnd(end: WebhookEnd): void;
}

/** The outcome of a webhook. `unsent` means that the server stopped first. */
export type WebhookEnd = 'delivered' | 'failed' | 'unsent';

/** Creates an id for a webhook without one. */
export function newWebhookId(): string {
  return `msg_${randomUUID()}`;
}

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
  readonly limits?: Partial<typeof RECEIVER_LIMITS>;
  /** For tests: clock and random numbers. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** An accepted webhook, or one that is not: then it has no attempts. */
interface LoggedWebhook extends Pick<Webhook, 'id' | 'requestId'> {
  readonly url: string | URL;
  readonly attempts?: number;
  /** Failure of the last attempt; empty if none failed. */
  readonly why?: string;
}

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
  readonly #log: Pick<Log, 'debug' | 'warn'>;
  readonly #signer: WebhookSigner | null;
  readonly #delivery = new HttpDelivery();
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #owed = new Set<Owed>();
  readonly #receivers: Receivers<Owed>;
  readonly #keeper: WebhookKeeper | null;
  #drain: { readonly endsAtMs: number; readonly done: () => void } | null = null;
  #closed = false;

  constructor(options: WebhooksOptions) {
    this.#log = options.log;
    this.#signer = options.signer;
    this.#keeper = options.keeper ?? null;
    this.#receivers = new Receivers(options.limits ?? {}, (owed) => void this.#attempt(owed));
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
      this.#warn(webhook, unsentText(webhook, webhook.isKept === true));
      return false;
    }
    const problem = this.#problemWith(webhook);
    if (problem !== null) {
      this.#warn(webhook, `was not sent: ${problem}`);
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

  /** Resolves once nothing is owed, or after `limitMs`. Then it calls `close`. */
  async drain(limitMs: number): Promise<void> {
    if (this.#closed) return;
    const endsAtMs = this.#clock.now() + limitMs;
    for (const owed of this.#owed)
      if (owed.retry !== null && owed.retry.atMs >= endsAtMs) this.#giveUpUnsent(owed);
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
  }

  /** Gives up all owed webhooks at once and logs them. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const owed of this.#owed) this.#giveUpUnsent(owed);
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
      const lost = 'it is lost if the server dies before it is delivered';
      this.#warn(owed, `is sent, but not stored: ${describeThrown(thrown).message}; ${lost}`);
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
      this.#debug(owed, 'was delivered');
      this.#end(owed, 'delivered');
      return;
    }
    owed.why = next.why;
    if (next.action === 'retry') {
      this.#retryLater(owed, next.delayMs);
      return;
    }
    this.#warn(owed, `failed with ${next.why} (${attemptsText(owed.attempts)})`);
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
    this.#debug(owed, `failed with ${asClause(owed.why)}; trying again`);
  }

  #giveUpUnsent(owed: Owed): void {
    this.#warn(owed, unsentText(owed, this.#keeper !== null));
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

  #warn(webhook: LoggedWebhook, what: string): void {
    this.#log.warn(factsOf(webhook), `Webhook to ${shownUrl(webhook.url)} ${what}`);
  }

  #debug(webhook: LoggedWebhook, what: string): void {
    this.#log.debug(factsOf(webhook), `Webhook to ${shownUrl(webhook.url)} ${what}`);
  }
}

/** `isKept`: another process, or the next one, sends it. */
function unsentText({ attempts = 0, why = '' }: LoggedWebhook, isKept: boolean): string {
  const last = why === '' ? '' : `, the last with ${why}`;
  const tried = attempts === 0 ? '' : ` after ${attemptsText(attempts)}${last}`;
  return `${isKept ? 'waits in the store' : 'was not sent'}: the server stopped${tried}`;
}

function attemptsText(attempts: number): string {
  return attempts === 1 ? '1 attempt' : `${attempts} attempts`;
}

function factsOf({ id, url, requestId, attempts = 0 }: LoggedWebhook): object {
  return { webhookId: id, url: shownUrl(url), requestId: requestId === '' ? undefined : requestId, attempts };
}

/** The URL without credentials and query, which may contain secrets: safe to log. */
function shownUrl(url: string | URL): string {
  if (typeof url === 'string' && !URL.canParse(url)) return '(no URL)';
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
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
