/** `resultWebhook`: what a route answers goes to another address as well. */
import { joinPieces } from '../../protocol/body-assembler.js';
import type { Job } from '../dispatch/job.js';
import { newWebhookId, type Webhooks } from '../webhooks/webhooks.js';

/** Posts the job's answer to `url`, if it is JSON and the app calls it a success; the caller's reply does not wait. */
export function postResult(webhooks: Webhooks, url: string, job: Job): void {
  job.onReply = ({ status, contentType }, pieces) => {
    if (status >= 300 || !/^application\/json\b/.test(contentType)) return;
    const body = joinPieces(pieces); // `send` copies it
    webhooks.send({ id: newWebhookId(), url, body, contentType, requestId: job.call.requestId });
  };
}
