/** The keys of a job and its bytes go with it, whatever has happened to it; and what is counted is what is there. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test, type TestContext } from 'node:test';
import type { RedisClient } from '../../../../../supervisor/jobs/redis/load-packages.js';
import { needs } from '../../../../helpers/needs.js';
import { eventually } from '../../../../helpers/server.js';
import { StoreBench } from '../../../../supervisor/jobs/conformance.js';
import { HEAD, newStoredJob } from '../../../../supervisor/jobs/stored-jobs.js';
import { RedisServer } from '../../../worker/api/store/redis-server.js';
import { flush, openFront, type Front } from './fronts.js';

const isMissing = needs('redis-server');
const OPTIONS = { skip: isMissing, timeout: 240_000 };
const MIB = 1024 ** 2;

/** Longer than any step takes, on any machine. */
const LONG_MS = 60_000;

let redis: RedisServer;
if (isMissing === false) {
  before(async () => (redis = await RedisServer.start()));
  after(() => redis.down());
  beforeEach(() => flush(redis.port));
}

async function front(
  t: TestContext,
  limits = { retentionMs: LONG_MS, maxBytes: 1e8 },
): Promise<Front & { bench: StoreBench }> {
  const opened = await openFront(redis.port, { lockMs: LONG_MS, limits });
  t.after(() => opened.store.close());
  return { ...opened, bench: new StoreBench(opened.store) };
}

/** The bytes of all jobs, and the sum of those that are noted of each. */
async function bytesOf(client: RedisClient): Promise<{ counted: number; noted: number }> {
  const [notes, counted] = await client.multi().hGetAll('banana:jobs').get('banana:bytes').execTyped();
  return {
    counted: Number(counted ?? 0),
    noted: Object.values(notes).reduce((sum, note) => sum + parseInt(note), 0),
  };
}

test('nothing is left of jobs that were dropped but counters, and no byte is lost', OPTIONS, async (t) => {
  const { bench, store, link } = await front(t);
  const client = link.commands;
  const count = async (step: string): Promise<void> => {
    const { counted, noted } = await bytesOf(client);
    assert.equal(counted, noted, step);
  };
  const large = JSON.stringify('x'.repeat(5000));
  const key = { scope: 's', content: 'c' };
  await bench.accept({ key, body: large });
  await count('accepted');
  const again = await bench.accept({ maxAttempts: 2, body: large, priority: 3 });
  await bench.begin('1');
  await bench.fail(again, '1');
  await count('tried again');
  const [first] = await bench.begin('2');
  await bench.answer(first as string, '2', 'x'.repeat(20_000));
  await count('answered');
  const withdrawn = await bench.accept({ key: { scope: 't', content: 'c' }, body: large });
  await store.withdraw(withdrawn);
  await count('withdrawn');
  const cancelled = await bench.accept({ webhook: 'http://127.0.0.1:1/', body: large });
  await store.cancel(cancelled);
  await count('cancelled, owing');
  await store.endWebhook(cancelled);
  await count('owing no more');
  const lost = await bench.accept({ body: large, priority: 5 });
  await bench.begin('3');
  await store.giveBack(lost, '3', true);
  await bench.begin('4');
  await store.giveBack(lost, '4', true);
  assert.equal(await bench.state(lost), 'failed');
  await bench.accept({ ttlMs: 1, version: '7', isPinned: true, body: large });
  await bench.accept({ delayMs: 300, ttlMs: 1, body: large });
  await store.owe({
    id: 'msg',
    url: 'http://127.0.0.1:1/',
    body: Buffer.from('1'),
    contentType: '',
    requestId: '',
  });
  await store.forgetWebhook('msg');
  await eventually(
    async () => (await bench.begin('last', { routes: new Map([['/', 9]]) })).includes(again),
    60_000,
    () => 'not tried again',
  );
  await bench.answer(again, 'last');
  await count('all has ended');
  await store.close();
  const later = await front(t, { retentionMs: 1, maxBytes: 1e8 }); // for which the time of all that has ended is over
  const left = async (): Promise<string[]> => {
    await later.store.idle();
    const names = await later.link.commands.keys('*');
    return names.filter((name) => !/^banana:(seq|bytes|queues|news|clean)$/.test(name));
  };
  const ofQueues = /^banana:[^:]+ [^:]+:(meta|marker|events|pc|id|stalled-check|stalled)$/;
  let keys: string[] = [];
  await eventually(
    async () => (keys = (await left()).filter((name) => !ofQueues.test(name))).length === 0,
    60_000,
    () => keys.join(' '),
  );
  assert.deepEqual(await bytesOf(later.link.commands), { counted: 0, noted: 0 });
});

test(
  'a result above 16 MiB is dropped, which its record says, and counts for no more than 1 KiB',
  OPTIONS,
  async (t) => {
    const { bench, store, link } = await front(t);
    const id = await bench.accept();
    await bench.begin();
    const body = Buffer.alloc(16 * MIB + 1);
    const times = { runMs: 1, queueMs: 2 };
    const record = await store.settle(id, 'mark', { head: HEAD, bytes: body.length, body, ...times });
    assert.deepEqual(
      [record?.state, record?.end?.result, await store.readResult(id)],
      ['succeeded', { head: HEAD, bytes: body.length, isDropped: true }, null],
    );
    assert.deepEqual(await bytesOf(link.commands), { counted: 1024, noted: 1024 });
  },
);

test('a body above 16 MiB is refused and counts for nothing; one of 16 MiB is kept', OPTIONS, async (t) => {
  const { store, link } = await front(t);
  const jobOf = (id: string, bytes: number): Parameters<typeof store.accept>[0] => {
    const job = newStoredJob({ id, createdAt: Date.now() });
    const body = { pieces: [Buffer.alloc(bytes, ' ')], bytes, release: () => {} };
    return { ...job, body, call: { ...job.call, bodyBytes: bytes } };
  };
  assert.deepEqual(await store.accept(jobOf('a', 16 * MIB + 1)), { is: 'too large', maxBytes: 16 * MIB });
  assert.equal((await bytesOf(link.commands)).counted, 0);
  assert.equal((await store.accept(jobOf('b', 16 * MIB))).is, 'accepted');
  assert.deepEqual(await bytesOf(link.commands), { counted: 16 * MIB + 1, noted: 16 * MIB + 1 });
});
