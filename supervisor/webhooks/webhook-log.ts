/** Logs webhooks: one warning for each that was not delivered, and the rest at level debug. */
import { asClause } from '../../protocol/text/sentences.js';
import type { Log } from '../observe/log.js';

/** The facts that are told of a webhook. */
export interface Told {
  readonly id: string;
  readonly url: string | URL;
  readonly requestId: string;
  readonly attempts: number;
  /** What the last attempt failed with; empty if none did. */
  readonly why: string;
}

export class WebhookLog {
  readonly #log: Pick<Log, 'debug' | 'warn'>;

  constructor(log: Pick<Log, 'debug' | 'warn'>) {
    this.#log = log;
  }

  refused(webhook: Pick<Told, 'id' | 'url' | 'requestId'>, problem: string): void {
    this.#warn({ ...webhook, attempts: 0, why: '' }, `was not sent: ${problem}`);
  }

  retrying(webhook: Told): void {
    this.#log.debug(
      factsOf(webhook),
      `Webhook to ${shownUrl(webhook.url)} failed with ${asClause(webhook.why)}; trying again`,
    );
  }

  delivered(webhook: Told): void {
    this.#log.debug(factsOf(webhook), `Webhook to ${shownUrl(webhook.url)} was delivered`);
  }

  failed(webhook: Told): void {
    this.#warn(webhook, `failed with ${webhook.why} (${attemptsText(webhook.attempts)})`);
  }

  unsent(webhook: Told): void {
    const { attempts, why } = webhook;
    const tried =
      attempts === 0 ? '' : ` after ${attemptsText(attempts)}${why === '' ? '' : `, the last with ${why}`}`;
    this.#warn(webhook, `was not sent: the server stopped${tried}`);
  }

  #warn(webhook: Told, what: string): void {
    this.#log.warn(factsOf(webhook), `Webhook to ${shownUrl(webhook.url)} ${what}`);
  }
}

/** The URL as a person may see it, without what stands before the host and in the query: credentials and tokens. */
export function shownUrl(url: string | URL): string {
  if (typeof url === 'string' && !URL.canParse(url)) return '(no URL)';
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function factsOf({ id, url, requestId, attempts }: Told): object {
  return { webhookId: id, url: shownUrl(url), requestId: requestId === '' ? undefined : requestId, attempts };
}

function attemptsText(attempts: number): string {
  return attempts === 1 ? '1 attempt' : `${attempts} attempts`;
}
