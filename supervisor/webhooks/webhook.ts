/** A webhook as it is handed over, and what may become of it. */
import { randomUUID } from 'node:crypto';

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

/** An id for a webhook that has none of its own. */
export function newWebhookId(): string {
  return `msg_${randomUUID()}`;
}
