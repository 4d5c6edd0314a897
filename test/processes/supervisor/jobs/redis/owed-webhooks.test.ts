/** Webhooks that fronts owe, when answers of Redis are lost: none may wait for the death of a front that does not know of it. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test, type TestContext } from 'node:test';
import { needs } from '../../../../helpers/needs.js';
import { eventually } from '../../../../helpers/server.js';
import { StoreBench } from '../../../../supervisor/jobs/conformance.js';
import { RedisServer } from '../../../worker/api/store/redis-server.js';
import { flush, forgetFronts, openFront, type Front } from './fronts.js';
import { RedisRoad } from './redis-road.js';

const isMissing = needs('redis-server');
const OPTIONS = { skip: isMissing, timeout: 240_000 };
const URL = 'http://127.0.0.1:1/hook';

let redis: RedisServer;
if (isMissing === false) {
  before(async () => (redis = await RedisServer.start()));
  after(() => redis.down());
  beforeEach(() => flush(redis.port));
}

interface BenchFront extends Front {
  readonly bench: StoreBench;
}

async function front(t: TestContext, port = redis.port): Promise<BenchFront> {
  const opened = await openFront(port, { lockMs: 1000 });
  t.after(() => opened.store.close());
  const bench = new StoreBench(opened.store);
  opened.store.listener = { ...opened.store.listener, onFailed: () => {} };
  return { ...opened, bench };
}

async function pair(t: TestContext): Promise<{ road: RedisRoad; a: BenchFront; b: BenchFront }> {
  const road = await RedisRoad.open(t, redis.port);
  return { road, a: await front(t, road.port), b: await front(t) };
}

async function mended(road: RedisRoad, { link }: Front): Promise<void> {
  await eventually(
    () => !link.isReady,
    60_000,
    () => 'still open',
  );
  road.mend();
  await eventually(
    () => link.isReady,
    60_000,
    () => link.problem,
  );
}

/** The webhooks that a front takes, by the ids of their jobs, until one is there. */
async function takenBy({ store }: Front): Promise<string[]> {
  const ids: string[] = [];
  await eventually(
    async () => {
      for (const taken of await store.takeWebhooks(10))
        ids.push(taken.of === 'job' ? taken.record.id : taken.webhook.id);
      return ids.length > 0;
    },
    60_000,
    () => 'none is taken',
  );
  return ids;
}

function leaseOf({ link }: Front, id: string): Promise<number | null> {
  return link.use(() => link.commands.zScore('banana:owed', id));
}

test('a webhook whose taking was not answered is taken again once its time is over', OPTIONS, async (t) => {
  const { road, a, b } = await pair(t);
  const c = await front(t);
  const id = await c.bench.accept({ webhook: URL });
  await c.bench.begin();
  await c.bench.answer(id);
  c.link.close();
  await forgetFronts(redis.port);
  const taking = a.store.takeWebhooks(10);
  taking.catch(() => {});
  await road.cutAfter(async () => ((await leaseOf(b, `j${id}`)) ?? 0) > 0);
  await assert.rejects(taking);
  await mended(road, a);
  assert.deepEqual(await b.store.takeWebhooks(10), [], 'it may be on its way');
  await forgetFronts(redis.port);
  assert.deepEqual(await takenBy(a), [id]);
  assert.deepEqual(await a.store.takeWebhooks(10), [], 'once');
});

test('the end of a job without an answer owes its webhook', OPTIONS, async (t) => {
  const { road, a, b } = await pair(t);
  const cancelled = await a.bench.accept({ webhook: URL, delayMs: 100_000 });
  await a.store.idle();
  const cancel = a.store.cancel(cancelled);
  cancel.catch(() => {});
  await road.cutAfter(async () => (await b.bench.state(cancelled)) === 'cancelled');
  await assert.rejects(cancel);
  await mended(road, a);
  assert.deepEqual(a.bench.endedUnrun, [], 'it was not told');
  await forgetFronts(redis.port);
  assert.deepEqual(await takenBy(a), [cancelled]);
});

test(
  'a job whose server dies between the debt and the outcome owes nothing until it ends',
  OPTIONS,
  async (t) => {
    const { a, b } = await pair(t);
    const id = await a.bench.accept({ webhook: URL });
    await a.bench.begin();
    await a.link.commands.zAdd('banana:owed', { score: 0, value: `j${id}` });
    assert.deepEqual(await b.store.takeWebhooks(10), []);
    assert.equal(await leaseOf(b, `j${id}`), null);
    assert.equal((await a.bench.answer(id))?.end?.owesWebhook, true);
    assert.notEqual(await leaseOf(b, `j${id}`), null);
  },
);

test(
  'a webhook of an app that was stored without an answer is forgotten by its sender',
  OPTIONS,
  async (t) => {
    const { road, a, b } = await pair(t);
    const webhook = { id: 'msg_1', url: URL, body: Buffer.from('{}'), contentType: '', requestId: '' };
    const owing = a.store.owe(webhook);
    owing.catch(() => {});
    await road.cutAfter(async () => (await b.link.commands.exists('banana:hook:msg_1')) === 1);
    await assert.rejects(owing);
    await mended(road, a);
    await forgetFronts(redis.port);
    assert.deepEqual(await a.store.takeWebhooks(10), [], 'its sender has it in memory');
    await a.store.forgetWebhook('msg_1');
    const left = await b.link.commands.keys('banana:*');
    assert.deepEqual(
      left.filter((key) => /hook|owed/.test(key)),
      [],
    );
  },
);

test('after an outage a front takes nothing that it sends already', OPTIONS, async (t) => {
  const { road, a } = await pair(t);
  const id = await a.bench.accept({ webhook: URL });
  await a.bench.begin();
  await a.bench.answer(id);
  await a.store.owe({ id: 'msg_1', url: URL, body: Buffer.from('{}'), contentType: '', requestId: '' });
  road.cut();
  await mended(road, a);
  await forgetFronts(redis.port);
  assert.deepEqual(await a.store.takeWebhooks(10), []);
});
