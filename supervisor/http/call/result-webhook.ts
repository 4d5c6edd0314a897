/** Posts a route's answers to the address in its `resultWebhook`; for a background route, its failures too. */
import { joinPieces } from '../../../protocol/wire/body-assembler.js';
import type { Route } from '../../../protocol/wire/messages.js';
import type { Job } from '../../dispatch/job.js';
import type { KeptJob } from '../../jobs/kept-jobs.js';
import { errorBody, statusOf } from '../answer/house-error.js';
import { isJson } from './route-check.js';
import { newWebhookId } from '../../webhooks/webhook.js';
import type { Webhooks } from '../../webhooks/webhooks.js';

/**
 * Posts the job's answer to the route's webhook, if it has one and the answer is JSON. An answer that is not a success is
 * posted for background routes only, whose caller does not see it. No caller waits for the webhook.
 */
export function postResult(webhooks: Webhooks, { webhook: url, kind }: Route, job: Job): void {
  if (url === '') return;
  job.onReply = ({ status, contentType }, pieces) => {
    if ((status >= 300 && kind !== 'background') || !isJson(contentType)) return;
    const body = joinPieces(pieces); // `send` copies it
    webhooks.send({ id: newWebhookId(), url, body, contentType, requestId: job.call.requestId });
  };
}

/** Posts the error of a job that fails, because its webhook is the only place where a result is expected. */
export function postFailure(webhooks: Webhooks, { webhook: url }: Route, kept: KeptJob): void {
  if (url === '') return;
  kept.onceEnded(() => {
    if (kept.error === null) return;
    const { requestId } = kept;
    const body = errorBody(kept.error, requestId, { status: statusOf(kept.error) });
    webhooks.send({ id: newWebhookId(), url, body, contentType: 'application/json', requestId });
  });
}
