/** Builds the headers of an attempt. Values that are not valid in a header are left out. */
import { VERSION } from '../version.js';
import type { WebhookSigner } from '../options/webhook-signer.js';
import type { Webhook } from './webhook.js';

/** Headers of an attempt at `nowMs` since the epoch, signed anew for each attempt. `signer` null: not signed. */
export function webhookHeaders(
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
    ...(signer === null ? {} : { 'webhook-signature': signer.sign(id, timestampS, body) }),
    ...(isNamed ? { 'x-banana-request-id': requestId, 'x-request-id': requestId } : {}),
  };
}

/** Whether the text is visible ASCII of at most 502 characters. */
function isHeaderValue(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]{0,500}[\x21-\x7e])?$/.test(text);
}
