/**
 * Webhook rules that both sides share: allowed URLs and defaults. The worker checks a URL, because a mistake has a
 * stack there, and the front checks it again.
 */

/** Time limit of one attempt. */
export const DEFAULT_TIMEOUT_MS = 10_000;

/** Attempts after the first. */
export const DEFAULT_RETRIES = 3;

/**
 * @throws TypeError unless it is an absolute http: or https: URL; the message does not repeat it, because it may
 * contain a password
 */
export function parseWebhookUrl(raw: unknown): URL {
  const text = raw instanceof URL ? raw.href : raw;
  if (typeof text !== 'string') throw new TypeError('the URL of a webhook must be a string or a URL');
  if (!URL.canParse(text)) {
    throw new TypeError('the URL of a webhook must be absolute, such as https://example.com/hook');
  }
  const url = new URL(text);
  if (url.protocol === 'http:' || url.protocol === 'https:') return url;
  throw new TypeError(`the URL of a webhook must begin with http: or https:, not ${url.protocol}`);
}
