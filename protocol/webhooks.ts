/** Webhook rules that both sides share: the URLs allowed, and the defaults. The worker checks a URL, since a mistake has a
 *  stack there, and the front checks it again. */

/** How long one attempt may take. */
export const DEFAULT_TIMEOUT_MS = 10_000;

/** Attempts after the first. */
export const DEFAULT_RETRIES = 3;

/** @throws TypeError unless it is an absolute http: or https: URL. Does not repeat it: it may hold a password. */
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
