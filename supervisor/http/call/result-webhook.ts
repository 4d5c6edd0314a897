/** Posts a route's answers to the address in its `resultWebhook`. */
import { joinPieces } from '../../../protocol/wire/body-assembler.js';
import type { Route } from '../../../protocol/wire/messages.js';
import type { Job } from '../../dispatch/job.js';
import { isJson } from './route-check.js';
import { newWebhookId } from '../../webhooks/webhook.js';
import type { Webhooks } from '../../webhooks/webhooks.js';

/** Posts the job's answer to the route's webhook, if it has one and the answer is a success in JSON. No caller waits for it. */
export function postResult(webhooks: Webhooks, { webhook: url }: Route, job: Job): void {
  if (url === '') return;
  job.onReply = ({ status, contentType }, pieces) => {
    if (status >= 300 || !isJson(contentType)) return;
    const body = joinPieces(pieces); // `send` copies it
    webhooks.send({ id: newWebhookId(), url, body, contentType, requestId: job.call.requestId });
  };
}
