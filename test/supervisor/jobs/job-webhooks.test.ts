/** The ends of jobs that are posted, and when the store may forget that it owes them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import {
  keptError,
  type AnsweredJob,
  type EndedRecord,
  type KeptWebhook,
  type Outcome,
} from '../../../supervisor/jobs/job-record.js';
import { begun, settled } from '../../../supervisor/jobs/job-rules.js';
import type { JobStore } from '../../../supervisor/jobs/job-store.js';
import { StoreGuard } from '../../../supervisor/jobs/store-guard.js';
import { JobWebhooks } from '../../../supervisor/jobs/job-webhooks.js';
import { webhookOf } from '../../../supervisor/server/job-outcomes.js';
import type { Webhooks, Webhook, WebhookEvents } from '../../../supervisor/webhooks/webhooks.js';
import { HEAD, newStoredJob } from './stored-jobs.js';

const URL = 'https://example.com/hook';
const TIMES = { runMs: 1, queueMs: 1 };

function jobThat(outcome: Outcome): AnsweredJob {
  const { record, call } = newStoredJob({ id: 'id', webhook: URL });
  const ended = settled(begun(record, '1', 0), outcome, 0, false) as EndedRecord;
  return { record: ended, call, body: 'error' in outcome ? null : outcome.body };
}

const ANSWERED = jobThat({ ...TIMES, head: HEAD, bytes: 1, body: Buffer.from('1') });

const NONE: readonly KeptWebhook[] = [];

interface Bench {
  readonly webhooks: JobWebhooks;
  readonly sent: Webhook[];
  readonly events: Partial<WebhookEvents>[];
  readonly ended: string[];
  /** Ids of jobs whose results were read from the store. */
  readonly read: string[];
  /** Room among the webhooks that are owed. */
  readonly owed: { room: number };
}

function setUp({ takes = true, isDurable = true, isClosed = false, left = NONE, room = 100 } = {}): Bench {
  const [sent, events, ended, read]: [Webhook[], Partial<WebhookEvents>[], string[], string[]] = [
    [],
    [],
    [],
    [],
  ];
  const owed = { room };
  const inStore = [...left];
  const note = (notes: string[], text: string): Promise<void> => Promise.resolve(void notes.push(text));
  const store: Partial<JobStore> = {
    takeWebhooks: (limit) => Promise.resolve(inStore.splice(0, limit)),
    forgetWebhook: (id) => note(ended, `webhook ${id}`),
    endWebhook: (id) => note(ended, `job ${id}`),
    readResult: async (id) => {
      await note(read, id);
      return Buffer.from('1');
    },
  };
  const guard = new StoreGuard(store as JobStore, { onAway() {}, onWell() {}, onRetry() {} });
  const sender: Partial<Webhooks> = {
    isClosed,
    get room() {
      return owed.room;
    },
    hasRoomFor: () => owed.room > 0,
    send: (webhook, more = {}) => {
      sent.push(webhook);
      events.push(more);
      owed.room -= 1;
      return takes;
    },
  };
  const webhooks = new JobWebhooks(sender as Webhooks, isDurable ? guard : null, webhookOf);
  return { webhooks, sent, events, ended, read, owed };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a webhook that the store keeps waits while too many are owed, and none is dropped', async () => {
  const { webhooks, sent, events, ended, read, owed } = setUp({ room: 1 });
  const failed = jobThat({ ...TIMES, error: keptError(new ServeError('SERVE_WORKER_LOST')) });
  for (const job of [ANSWERED, ANSWERED, failed]) webhooks.post(job);
  assert.deepEqual([sent.length, ended], [1, []]);
  for (const end of [1, 2]) {
    owed.room = 1;
    events[end - 1]?.onEnd?.('delivered');
    await turn();
    assert.equal(sent.length, end + 1);
  }
  assert.deepEqual([String(sent[1]?.body), read], ['1', ['id']], 'only a result is read again');
  assert.match(String(sent[2]?.body), /SERVE_WORKER_LOST/);
});

test('no more webhooks are taken from the store than there is room for', async () => {
  const left = Array.from({ length: 30 }, () => ({ of: 'job', ...ANSWERED }) as const);
  const { webhooks, sent, owed } = setUp({ left, room: 12 });
  await webhooks.start();
  assert.equal(sent.length, 12);
  owed.room = 100;
  await webhooks.start();
  webhooks.close();
  assert.equal(sent.length, 30);
});

test('one whose result cannot be read now waits for the next look', async () => {
  const { webhooks, sent, owed, read } = setUp({ room: 0 });
  webhooks.post(ANSWERED);
  const { push } = read;
  read.push = () => {
    throw new Error('the store is away');
  };
  owed.room = 1;
  await webhooks.start();
  assert.equal(sent.length, 0);
  read.push = push;
  await webhooks.start();
  webhooks.close();
  assert.equal(sent.length, 1);
});

test('the end of a job is owed until it is delivered, under the same id whichever process sends it', async () => {
  const { webhooks, sent, events, ended } = setUp({ left: [{ of: 'job', ...ANSWERED }] });
  webhooks.post(ANSWERED);
  await webhooks.start();
  webhooks.close();
  assert.deepEqual(
    sent.map(({ id, url, body, isKept }) => [id, url, String(body), isKept]),
    Array(2).fill(['msg_id', URL, '1', true]),
  );
  assert.deepEqual(ended, []);
  events[0]?.onEnd?.('unsent');
  assert.deepEqual(ended, [], 'the next process sends it');
  events[1]?.onEnd?.('failed');
  assert.deepEqual(ended, ['job id']);
});

test('without a store that keeps it, a webhook is held in memory', () => {
  const { webhooks, sent } = setUp({ isDurable: false });
  webhooks.post(ANSWERED);
  assert.deepEqual([sent[0]?.id, sent[0]?.isKept], ['msg_id', false]);
});

test('an end that is not posted, or whose address is none, is not owed any more', () => {
  const dropped = setUp({ takes: false });
  dropped.webhooks.post(ANSWERED);
  const text = setUp();
  text.webhooks.post(
    jobThat({ ...TIMES, head: { ...HEAD, contentType: 'text/plain' }, bytes: 0, body: Buffer.alloc(0) }),
  );
  assert.deepEqual([dropped.ended, text.sent, text.ended], [['job id'], [], ['job id']]);
});

test('an end that comes when the server has stopped stays owed: the next one posts it', () => {
  const { webhooks, ended } = setUp({ takes: false, isClosed: true });
  webhooks.post(ANSWERED);
  assert.deepEqual(ended, []);
});

test('a background job that failed posts its error', () => {
  const { webhooks, sent } = setUp();
  webhooks.post(jobThat({ ...TIMES, error: keptError(new ServeError('SERVE_WORKER_LOST')) }));
  const { error } = JSON.parse(String(sent[0]?.body)) as { error: { code: string; requestId: string } };
  assert.deepEqual([error.code, error.requestId], ['SERVE_WORKER_LOST', 'r']);
});

test('a webhook of an app that another process has left is forgotten once it has ended', async () => {
  const webhook = { id: 'msg_1', url: URL, body: Buffer.from('1'), contentType: '', requestId: '' };
  const { webhooks, sent, events, ended } = setUp({ left: [{ of: 'app', webhook }] });
  await webhooks.start();
  webhooks.close();
  assert.deepEqual([sent[0]?.id, sent[0]?.isKept, ended], ['msg_1', true, []]);
  events[0]?.onEnd?.('delivered');
  assert.deepEqual(ended, ['webhook msg_1']);
});
