/** Standard Webhooks signatures (https://www.standardwebhooks.com): HMAC-SHA256 over id, timestamp and raw body. */
import { createHmac } from 'node:crypto';
import { NotAllowed } from './units.js';

const PREFIX = 'whsec_';
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/**
 * Returns the value of `webhook-signature`: one signature per key, so that a receiver may have the old or the new one. The
 * keys are in a closure, which neither JSON.stringify nor inspect shows.
 */
export type WebhookSigner = (id: string, timestampS: number, body: Uint8Array) => string;

/** Reads `whsec_` and base64 of 24 to 64 bytes; several may be separated by spaces or commas. @throws NotAllowed */
export function parseWebhookSecrets(raw: unknown): WebhookSigner {
  const parts = typeof raw === 'string' ? raw.split(/[\s,]+/).filter((part) => part !== '') : [];
  const keys = parts.map(keyOf);
  if (keys.length === 0 || keys.includes(null)) {
    throw new NotAllowed(
      `${PREFIX} and the base64 of ${MIN_KEY_BYTES} to ${MAX_KEY_BYTES} bytes; separate several with spaces or commas`,
    );
  }
  return (id, timestampS, body) =>
    (keys as Buffer[])
      .map((key) => createHmac('sha256', key).update(`${id}.${timestampS}.`).update(body).digest('base64'))
      .map((signature) => `v1,${signature}`)
      .join(' ');
}

function keyOf(secret: string): Buffer | null {
  const text = secret.slice(PREFIX.length);
  if (!secret.startsWith(PREFIX) || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  const key = Buffer.from(text, 'base64');
  // Node skips characters that are not base64: only valid text encodes back to itself.
  const isWhole = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  return isWhole && key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? key : null;
}
