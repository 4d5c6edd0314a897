/** A webhook as it is handed over, and its possible outcomes. */
import { randomUUID } from 'node:crypto';

export interface Webhook {
  /** Names it over all retries, for receivers that want each one once. Printable ASCII without a dot; unique. */
  readonly id: string;
  /** http: or https:. Its user and password become an Authorization header. */
  readonly url: string;
  /** `send` copies the body: the caller may use the memory again. */
  readonly body: Uint8Array;
  /** Content type of the body; empty means `application/json`. */
  readonly contentType: string;
  /** Id of the call that the webhook belongs to; empty if there is none. */
  readonly requestId: string;
  /** Time limit of one attempt, at most 60 s; 10 s if left out. */
  readonly timeoutMs?: number;
  /** Number of attempts after the first, at most 10; 3 if left out. */
  readonly retries?: number;
}

/** How a webhook ended. `unsent` means that the server stopped first. */
export type WebhookEnd = 'delivered' | 'failed' | 'unsent';

export interface UnsentWebhook {
  readonly id: string;
  /** The URL without credentials and query. */
  readonly url: string;
  readonly requestId: string;
  readonly attempts: number;
}

/** An id for a webhook that has none of its own. */
export function newWebhookId(): string {
  return `msg_${randomUUID()}`;
}
