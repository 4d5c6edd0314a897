/** Makes the headers of an attempt. A value that would break a header is left out. */
import { VERSION } from '../version.js';
import type { WebhookSigner } from '../options/webhook-signer.js';
import type { Webhook } from './webhook.js';

/** Returns the headers of an attempt made at `nowMs` since the epoch: each is signed anew. A null signer signs nothing. */
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

/** Whether the text is visible ASCII, of a length that no receiver minds. */
function isHeaderValue(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]{0,500}[\x21-\x7e])?$/.test(text);
}
