/** Logs webhooks: one warning for each that was not delivered, all else at level debug. */
import { asClause } from '../../protocol/text/sentences.js';
import type { Log } from '../observe/log.js';
import type { UnsentWebhook } from './webhook.js';

/** Fields of a webhook in the log. */
export interface LoggedWebhook extends Omit<UnsentWebhook, 'url'> {
  readonly url: string | URL;
  /** Failure of the last attempt; empty if none failed. */
  readonly why: string;
}

export class WebhookLog {
  readonly #log: Pick<Log, 'debug' | 'warn'>;

  constructor(log: Pick<Log, 'debug' | 'warn'>) {
    this.#log = log;
  }

  refused(webhook: Pick<LoggedWebhook, 'id' | 'url' | 'requestId'>, problem: string): void {
    this.#warn({ ...webhook, attempts: 0, why: '' }, `was not sent: ${problem}`);
  }

  retrying(webhook: LoggedWebhook): void {
    this.#log.debug(
      factsOf(webhook),
      `Webhook to ${shownUrl(webhook.url)} failed with ${asClause(webhook.why)}; trying again`,
    );
  }

  delivered(webhook: LoggedWebhook): void {
    this.#log.debug(factsOf(webhook), `Webhook to ${shownUrl(webhook.url)} was delivered`);
  }

  failed(webhook: LoggedWebhook): void {
    this.#warn(webhook, `failed with ${webhook.why} (${attemptsText(webhook.attempts)})`);
  }

  notKept(webhook: LoggedWebhook, why: string): void {
    this.#warn(
      webhook,
      `is sent, but not stored: ${why}; it is lost if the server dies before it is delivered`,
    );
  }

  /** `isKept`: another process, or the next one, sends it. */
  unsent(webhook: LoggedWebhook, isKept: boolean): void {
    const { attempts, why } = webhook;
    const tried =
      attempts === 0 ? '' : ` after ${attemptsText(attempts)}${why === '' ? '' : `, the last with ${why}`}`;
    const what = isKept ? 'waits in the store' : 'was not sent';
    this.#warn(webhook, `${what}: the server stopped${tried}`);
  }

  #warn(webhook: LoggedWebhook, what: string): void {
    this.#log.warn(factsOf(webhook), `Webhook to ${shownUrl(webhook.url)} ${what}`);
  }
}

/** The URL without credentials and query, which may contain secrets: safe to log. */
export function shownUrl(url: string | URL): string {
  if (typeof url === 'string' && !URL.canParse(url)) return '(no URL)';
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function factsOf({ id, url, requestId, attempts }: LoggedWebhook): object {
  return { webhookId: id, url: shownUrl(url), requestId: requestId === '' ? undefined : requestId, attempts };
}

function attemptsText(attempts: number): string {
  return attempts === 1 ? '1 attempt' : `${attempts} attempts`;
}
