import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WebhookRequest } from '../../worker/api/send-webhook.js';

const MODULE = new URL('../../worker/api/send-webhook.js', import.meta.url).href;

/** Another instance of the module, as another loader would make. */
async function copy(name: string): Promise<typeof import('../../worker/api/send-webhook.js')> {
  return (await import(`${MODULE}?${name}`)) as typeof import('../../worker/api/send-webhook.js');
}

test('sendWebhook outside a served app rejects with an error that names the commands to start one', async () => {
  const { sendWebhook } = await copy('outside');
  await assert.rejects(sendWebhook('http://localhost/', {}), /^Error: sendWebhook works inside a served app/);
});

test('sendWebhook finds its worker from every copy of the module, in both ways of writing it', async () => {
  const requests: WebhookRequest[] = [];
  const [worker, app] = await Promise.all([copy('worker'), copy('app')]);
  assert.notEqual(worker.sendWebhook, app.sendWebhook);
  worker.offerWebhooks({ send: (request) => Promise.resolve(void requests.push(request)) });
  const url = new URL('http://localhost/b');
  await app.sendWebhook('http://localhost/a', { n: 1 }, { retries: 0 });
  await app.sendWebhook(url, null);
  await app.sendWebhook({ url: 'http://localhost/c', json: [1], await: true });
  assert.deepEqual(requests, [
    { url: 'http://localhost/a', json: { n: 1 }, retries: 0 },
    { url, json: null },
    { url: 'http://localhost/c', json: [1], await: true },
  ]);
});
