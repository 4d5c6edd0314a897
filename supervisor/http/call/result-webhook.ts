/** `resultWebhook`: what a route answers goes to another address as well; of a background route, how it failed too. */
import { joinPieces } from '../../../protocol/body-assembler.js';
import type { Route } from '../../../protocol/messages.js';
import type { Job } from '../../dispatch/job.js';
import type { KeptJob } from '../../jobs/kept-jobs.js';
import { errorBody } from '../socket/refuse.js';
import { isJson } from './route-check.js';
import { newWebhookId } from '../../webhooks/webhook.js';
import type { Webhooks } from '../../webhooks/webhooks.js';

/**
 * If the route has a webhook: posts the job's answer, if that is JSON, and a success or what only the webhook will tell. No
 * caller waits for it.
 */
export function postResult(webhooks: Webhooks, { webhook: url, kind }: Route, job: Job): void {
  if (url === '') return;
  job.onReply = ({ status, contentType }, pieces) => {
    if ((status >= 300 && kind !== 'background') || !isJson(contentType)) return;
    const body = joinPieces(pieces); // `send` copies it
    webhooks.send({ id: newWebhookId(), url, body, contentType, requestId: job.call.requestId });
  };
}

/** Nobody else would tell the one who waits for the webhook. */
export function postFailure(webhooks: Webhooks, { webhook: url }: Route, kept: KeptJob): void {
  if (url === '') return;
  kept.onceEnded(() => {
    if (kept.error === null) return;
    const { requestId } = kept;
    const body = errorBody(kept.error, requestId);
    webhooks.send({ id: newWebhookId(), url, body, contentType: 'application/json', requestId });
  });
}
