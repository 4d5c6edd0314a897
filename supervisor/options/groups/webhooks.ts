/** Options of webhooks. */
import { type WebhookSigner, parseWebhookSecrets } from '../webhook-signer.js';
import { serverOption, type SomeOptions } from '../option-spec.js';

export const WEBHOOKS = {
  webhookSecret: serverOption<WebhookSigner | null>({
    flag: '--webhook-secret',
    value: '<secret>',
    help: 'Secret that signs webhooks (Standard Webhooks): whsec_ followed by base64; each of several, separated by spaces or commas, signs. Prefer the environment.',
    defaultText: 'not signed',
    default: null,
    secret: true,
    parse: parseWebhookSecrets,
  }),
} as const satisfies SomeOptions;
