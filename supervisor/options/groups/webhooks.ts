/** How those who are sent results know that they come from here. */
import { type WebhookSigner, parseWebhookSecrets } from '../webhook-signer.js';
import { serverOption, type SomeOptions } from '../option-spec.js';

export const WEBHOOKS = {
  webhookSecret: serverOption<WebhookSigner | null>({
    flag: '--webhook-secret',
    value: '<secret>',
    help: 'Signs webhooks (Standard Webhooks): whsec_ and base64; several, apart by spaces or commas, all sign. Best given in the environment.',
    defaultText: 'not signed',
    default: null,
    secret: true,
    parse: parseWebhookSecrets,
  }),
} as const satisfies SomeOptions;
