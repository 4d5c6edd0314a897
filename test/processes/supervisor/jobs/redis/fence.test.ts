/** Two fronts on one Redis: a job begins once, wherever one of them is cut off or frozen, and a stale one ends nothing. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test, type TestContext } from 'node:test';
import { nameOf } from '../../../../../supervisor/jobs/redis/queues.js';
import { NO_LISTENER } from '../../../../../supervisor/jobs/job-store.js';
import { needs } from '../../../../helpers/needs.js';
import { eventually } from '../../../../helpers/server.js';
import { StoreBench } from '../../../../supervisor/jobs/conformance.js';
import { newStoredJob } from '../../../../supervisor/jobs/stored-jobs.js';
import { RedisServer } from '../../../worker/api/store/redis-server.js';
import { flush, openFront, type Front } from './fronts.js';
import { RedisRoad } from './redis-road.js';

const isMissing = needs('redis-server');
const OPTIONS = { skip: isMissing, timeout: 240_000 };

/** Longer than any pause of this process; the tests end the locks of fronts that are gone. */
const LOCK_MS = 10_000;

const QUEUE = nameOf({ model: 'm', version: null, route: '/' });

function lockOf(id: string): string {
  return `banana:${QUEUE}:${id}:lock`;
}

/** The time of these locks passes, and that of the next search for jobs without one comes. */
async function passLocks({ link }: Front, ...ids: readonly string[]): Promise<void> {
  await link.commands.del([...ids.map(lockOf), `banana:${QUEUE}:stalled-check`]);
}

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
  const opened = await openFront(port, { lockMs: LOCK_MS });
  t.after(() => opened.store.close());
  const bench = new StoreBench(opened.store);
  opened.store.listener = { ...opened.store.listener, onFailed: () => {} };
  return { ...opened, bench };
}

async function pair(t: TestContext): Promise<{ road: RedisRoad; a: BenchFront; b: BenchFront }> {
  const road = await RedisRoad.open(t, redis.port);
  const [a, b] = [await front(t, road.port), await front(t)];
  return { road, a, b };
}

/** Begins once the news have come. `meanwhile` is done before each look. */
async function beginSoon(
  { bench }: BenchFront,
  token: string,
  meanwhile?: () => Promise<void>,
): Promise<string[]> {
  let ids: string[] = [];
  const look = async (): Promise<boolean> => {
    await meanwhile?.();
    return (ids = await bench.begin(token)).length > 0;
  };
  await eventually(look, 60_000, () => 'no job is due');
  return ids;
}

function stateSoon(
  { bench }: BenchFront,
  id: string,
  state: string,
  meanwhile?: () => Promise<void>,
): Promise<void> {
  const look = async (): Promise<boolean> => {
    await meanwhile?.();
    return (await bench.state(id)) === state;
  };
  return eventually(look, 60_000, () => `${id} is not ${state}`);
}

test('fronts that pull at the same time begin each job once', OPTIONS, async (t) => {
  const fronts = [await front(t), await front(t), await front(t)];
  const [first] = fronts as [BenchFront];
  const ids: string[] = [];
  for (let i = 0; i < 100; i += 1) ids.push(await first.bench.accept({ priority: i % 3 }));
  const began: string[] = [];
  await Promise.all(
    fronts.map(async (one, f) => {
      for (let i = 0; began.length < ids.length && i < 2000; i += 1) {
        const token = `${f} ${i}`;
        for (const id of await one.bench.begin(token)) {
          began.push(id);
          assert.equal((await one.bench.answer(id, token))?.state, 'succeeded');
        }
      }
    }),
  );
  assert.deepEqual([...began].sort(), [...ids].sort());
});

test('a job that another front has accepted wakes this one, and its end is seen here', OPTIONS, async (t) => {
  const [a, b] = [await front(t), await front(t)];
  const id = await a.bench.accept();
  await eventually(
    () => b.bench.due.includes('m') && b.bench.waiting() === 1,
    60_000,
    () => 'b hears nothing',
  );
  assert.deepEqual(await beginSoon(b, 'b'), [id]);
  b.store.progress(id, 'b', { fraction: 0.5, text: 'half' });
  await b.bench.answer(id, 'b');
  await eventually(
    () => a.bench.moved.length === 3,
    60_000,
    () => `a hears of ${a.bench.moved.join()}`,
  );
  const { state, progress } = await a.bench.record(id);
  assert.deepEqual([a.bench.moved, state, progress?.text], [[id, id, id], 'succeeded', 'half']);
});

test('a front that comes later hears of the jobs that were there before it', OPTIONS, async (t) => {
  const a = await front(t);
  const id = await a.bench.accept();
  const b = await front(t);
  assert.deepEqual(await a.bench.begin('a'), [id]);
  await a.bench.answer(id, 'a');
  await eventually(
    () => b.bench.moved.length === 2,
    60_000,
    () => `b hears of ${b.bench.moved.join()}`,
  );
});

test(
  'a cancel by another front reaches the one that runs the job, even if the news are lost',
  OPTIONS,
  async (t) => {
    const { road, a, b } = await pair(t);
    const id = await a.bench.accept();
    assert.deepEqual(await a.bench.begin('a'), [id]);
    road.cut();
    assert.equal((await b.store.cancel(id))?.state, 'running');
    road.mend();
    await eventually(
      () => a.bench.cancelled.includes(id),
      60_000,
      () => 'a hears of no cancel',
    );
    assert.equal((await a.bench.fail(id, 'a'))?.state, 'cancelled');
  },
);

test(
  "BullMQ's layout is the one that the scripts know, and a foreign lock stops the outcome",
  OPTIONS,
  async (t) => {
    const a = await front(t);
    const client = a.link.commands;
    const [id, waiting, delayed] = [
      await a.bench.accept({ priority: 2 }),
      await a.bench.accept({ priority: 1 }),
      await a.bench.accept({ delayMs: 100_000 }),
    ];
    await a.bench.begin('mark');
    const at = `banana:${QUEUE}:`;
    assert.deepEqual(
      [await client.get(lockOf(id)), await client.lRange(`${at}active`, 0, -1)],
      ['mark', [id]],
    );
    assert.equal(await client.zScore(`${at}prioritized`, waiting), 9 * 2 ** 32 + 2);
    const { dueAt } = await a.bench.record(delayed);
    assert.equal(await client.zScore(`${at}delayed`, delayed), dueAt * 4096);
    const { name, processedOn, ats, pb } = await client.hGetAll(at + id);
    assert.deepEqual([name, Number(processedOn) > 0, ats, pb], ['/', true, '1', '1\nmark']);
    await client.set(lockOf(id), 'of another front');
    assert.equal(await a.bench.answer(id), null);
  },
);

test(
  'a front that dies after the fetch loses the job, and a repeatable one runs again',
  OPTIONS,
  async (t) => {
    const { road, a, b } = await pair(t);
    const id = await a.bench.accept({ priority: 1 });
    await a.store.idle();
    const dead = a.bench.begin('a').catch(() => []);
    await road.cutAfter(async () => (await b.link.commands.exists(lockOf(id))) === 1);
    assert.deepEqual(await dead, []);
    await stateSoon(b, id, 'lost', () => passLocks(b, id));
  },
);

test('a front that dies after the mark: the job is lost, or tried again', OPTIONS, async (t) => {
  const { road, a, b } = await pair(t);
  const [once, again] = [await a.bench.accept({ priority: 1 }), await a.bench.accept({ maxAttempts: 2 })];
  assert.deepEqual([await a.bench.begin('1'), await a.bench.begin('2')], [[once], [again]]);
  road.cut();
  await stateSoon(b, once, 'lost', () => passLocks(b, once));
  assert.deepEqual(await beginSoon(b, 'b', () => passLocks(b, again)), [again]);
  assert.equal((await b.bench.record(again)).attempts, 2);
  assert.deepEqual(
    b.bench.endedUnrun.concat(a.bench.endedUnrun).map(({ id }) => id),
    [once],
    'its end is told once',
  );
});

test('a front that comes back after its lock ends nothing, and gives nothing back', OPTIONS, async (t) => {
  const { road, a, b } = await pair(t);
  const id = await a.bench.accept({ maxAttempts: 2 });
  await a.bench.begin('a');
  road.cut();
  assert.deepEqual(await beginSoon(b, 'b', () => passLocks(b, id)), [id]);
  road.mend();
  await eventually(
    () => a.link.isReady,
    60_000,
    () => a.link.problem,
  );
  assert.equal(await a.bench.answer(id, 'a'), null);
  await a.store.giveBack(id, 'a', true);
  assert.equal(await b.bench.state(id), 'running');
  assert.equal((await b.bench.answer(id, 'b'))?.state, 'succeeded');
});

test('a begin that took longer than half a lock hands nothing over', OPTIONS, async (t) => {
  const { road, a, b } = await pair(t);
  const id = await a.bench.accept();
  await a.store.idle();
  road.hold('back');
  const begin = a.bench.begin('a');
  await eventually(
    async () => (await b.link.commands.exists(lockOf(id))) === 1,
    60_000,
    () => 'nothing is fetched',
  );
  const now = performance.now.bind(performance);
  const frozen = t.mock.method(performance, 'now', () => now() + LOCK_MS / 2 + 1);
  road.free();
  assert.deepEqual(await begin, []);
  frozen.mock.restore();
  assert.deepEqual(await beginSoon(b, 'b'), [id]);
  assert.equal((await b.bench.record(id)).attempts, 1);
});

test('a begin whose answer was lost is taken back by itself', OPTIONS, async (t) => {
  const { road, a, b } = await pair(t);
  const id = await a.bench.accept({ maxAttempts: 1 });
  await a.store.idle();
  const begin = a.bench.begin('a');
  begin.catch(() => {});
  await road.cutAfter(async () => (await b.bench.state(id)) === 'running');
  await assert.rejects(begin, /^Error: Redis at /);
  road.mend();
  assert.deepEqual(await beginSoon(b, 'b'), [id]);
});

test(
  'an outcome whose answer was lost is stored once, and the repeat gets the same answer',
  OPTIONS,
  async (t) => {
    const { road, a, b } = await pair(t);
    const id = await a.bench.accept();
    await a.bench.begin('a');
    await a.store.idle();
    const answer = a.bench.answer(id, 'a');
    answer.catch(() => {});
    await road.cutAfter(async () => (await b.bench.state(id)) === 'succeeded');
    await assert.rejects(answer);
    road.mend();
    await eventually(
      () => a.link.isReady,
      60_000,
      () => a.link.problem,
    );
    assert.deepEqual(await a.bench.answer(id, 'a'), await b.bench.record(id));
  },
);

test('a restart of Redis loses no running job: its front sets the lock again', OPTIONS, async (t) => {
  const { road, a, b } = await pair(t);
  const id = await a.bench.accept();
  await a.bench.begin('a');
  road.cut();
  await b.link.commands.del(lockOf(id)); // as after a restart that took longer than the lock
  road.mend();
  await eventually(
    async () => (await b.link.commands.exists(lockOf(id))) === 1,
    60_000,
    () => 'no lock',
  );
  assert.equal((await a.bench.answer(id, 'a'))?.state, 'succeeded');
});

test('a front without the route of the first jobs begins those of its own', OPTIONS, async (t) => {
  const [a, b] = [await front(t), await front(t)];
  for (let i = 0; i < 20; i += 1) await a.bench.accept({ route: '/large', priority: 9 });
  const id = await a.bench.accept({ route: '/' });
  assert.deepEqual(await beginSoon(b, 'b'), [id]);
});

test('fronts of another database hear nothing of these', OPTIONS, async (t) => {
  const [a, b] = [await front(t), await front(t)];
  const other = await openFront(redis.port, { database: 1 });
  t.after(() => other.store.close());
  const heard: string[] = [];
  other.store.listener = { ...NO_LISTENER, onDue: (model) => heard.push(model) };
  await a.bench.accept();
  await eventually(
    () => b.bench.waiting() === 1,
    60_000,
    () => 'b hears nothing',
  );
  assert.deepEqual([heard, other.store.hasDue('m')], [[], false]);
});

test('a key whose job somebody has removed by a tool of BullMQ is free', OPTIONS, async (t) => {
  const [a, b] = [await front(t), await front(t)];
  const key = { scope: 's', content: 'c' };
  const id = await a.bench.accept({ key, body: '1' });
  const at = `banana:${QUEUE}:`;
  await a.link.commands.del([at + id, `${at}prioritized`]);
  const again = newStoredJob({ id: 'again', createdAt: Date.now(), key, body: '1' });
  assert.equal((await b.store.accept(again)).is, 'accepted');
  assert.deepEqual(await beginSoon(b, 'b'), ['again']);
});

test(
  'a call of a key that names another version does not run beside one that is being stored',
  OPTIONS,
  async (t) => {
    const [a, b] = [await front(t), await front(t)];
    const key = { scope: 's', content: 'c' };
    const calls = [
      a.store.accept(newStoredJob({ id: 'a', createdAt: Date.now(), key })),
      b.store.accept(newStoredJob({ id: 'b', createdAt: Date.now(), key, isPinned: true })),
    ];
    const ends = await Promise.allSettled(calls);
    const ids = ends.map((end) => end.status === 'fulfilled' && 'record' in end.value && end.value.record.id);
    assert.equal(ids[0], ids[1], JSON.stringify(ends));
    const begun = [
      ...(await a.bench.begin('1')),
      ...(await a.bench.begin('2')),
      ...(await b.bench.begin('3')),
    ];
    assert.deepEqual(begun, [ids[0]]);
  },
);

test(
  'a job that was fetched with the end of another one, without an answer, goes back',
  OPTIONS,
  async (t) => {
    const { road, a, b } = await pair(t);
    const one = await a.bench.accept({ priority: 1 });
    const two = await a.bench.accept();
    assert.deepEqual(await a.bench.begin('1'), [one]);
    const [answer, begin] = [a.bench.answer(one, '1'), a.bench.begin('2')];
    const both = Promise.allSettled([answer, begin]);
    await road.cutAfter(async () => (await b.bench.state(two)) === 'running');
    assert.deepEqual(
      (await both).map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    road.mend();
    assert.deepEqual(await beginSoon(b, 'b'), [two]);
    assert.deepEqual([await b.bench.state(one), (await b.bench.record(two)).attempts], ['succeeded', 1]);
  },
);

test(
  'a job whose front has died runs no second time if the answer to its next fetch is lost',
  OPTIONS,
  async (t) => {
    const { road, a, b } = await pair(t);
    const id = await a.bench.accept({ maxAttempts: 1 });
    assert.deepEqual(await beginSoon(b, 'dead'), [id]);
    await a.bench.accept();
    await a.store.idle();
    const at = `banana:${QUEUE}:`;
    const { commands } = b.link;
    const isStalled = commands
      .multi()
      .del(lockOf(id))
      .lRem(`${at}active`, 1, id)
      .hIncrBy(at + id, 'stc', 1);
    await isStalled.rPush(`${at}wait`, id).exec(); // as a look does it
    const begin = a.bench.begin('a');
    begin.catch(() => {});
    await road.cutAfter(async () => (await commands.lLen(`${at}wait`)) === 0);
    road.mend();
    await stateSoon(b, id, 'lost');
  },
);

test('many jobs that expire at once end within seconds, far from Redis', OPTIONS, async (t) => {
  const road = await RedisRoad.open(t, redis.port);
  const a = await front(t, road.port);
  const ids = await Promise.all(
    Array.from({ length: 500 }, () => a.bench.accept({ version: '7', isPinned: true, ttlMs: 1500 })),
  );
  road.delay(5);
  await eventually(
    () => a.bench.endedUnrun.length === ids.length,
    60_000,
    () => `${a.bench.endedUnrun.length} have expired`,
  );
  assert.ok(a.link.isReady);
});

test('a Redis that is stuck fails each call within seconds, then all goes on', OPTIONS, async (t) => {
  const a = await front(t);
  const id = await a.bench.accept();
  redis.signal('SIGSTOP');
  const calls = [a.store.get(id), a.bench.begin('a'), a.store.list({ state: null, limit: 1, from: null })];
  const ends = await Promise.allSettled(calls);
  redis.signal('SIGCONT');
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  );
  await eventually(
    () => a.link.isReady,
    60_000,
    () => a.link.problem,
  );
  assert.deepEqual(await beginSoon(a, 'b'), [id]);
  assert.equal((await a.bench.answer(id, 'b'))?.state, 'succeeded');
});
