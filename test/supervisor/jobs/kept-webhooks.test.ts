/** Webhooks that a process which died has left in the store. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import type { KeptWebhook } from '../../../supervisor/jobs/job-record.js';
import { KeptWebhooks } from '../../../supervisor/jobs/kept-webhooks.js';

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('those without room are not dropped: they come again, before others are taken', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  const webhooks = ['a', 'b', 'c'].map(webhookOf);
  let [room, takes] = [1, 0];
  const sent: string[] = [];
  const unused = (): Promise<never> => Promise.reject(new Error('not called'));
  const store = {
    takeWebhooks: () => Promise.resolve(takes++ === 0 ? webhooks : []),
    ...{ owe: unused, forgetWebhook: unused, endWebhook: unused },
  };
  const kept = new KeptWebhooks(store, (one) => {
    if (room === 0) return false;
    room -= 1;
    sent.push(one.of === 'app' ? one.webhook.id : '');
    return true;
  });
  t.after(() => kept.close());
  await kept.start();
  assert.deepEqual([sent, takes], [['a'], 1]);
  for (room of [0, 2]) {
    mock.timers.tick(5000);
    await later();
  }
  assert.deepEqual([sent, takes], [['a', 'b', 'c'], 1]);
  mock.timers.tick(5000);
  await later();
  assert.equal(takes, 2);
});

function webhookOf(id: string): KeptWebhook {
  const webhook = { id, url: 'http://127.0.0.1/', body: Buffer.from('{}'), contentType: '', requestId: '' };
  return { of: 'app', webhook };
}
