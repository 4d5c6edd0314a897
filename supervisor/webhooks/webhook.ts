/** A webhook to send, and its possible outcomes. */
import { randomUUID } from 'node:crypto';

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
