/** Jobs are BullMQ's jobs: its own `Queue`, which dashboards use, reads where each is, with names, data, progress and reasons. */
import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { createNodeRedisClient, Queue } from 'bullmq';
import { ServeError } from '../../../../../protocol/errors.js';
import { nameOf, placeIn, PREFIX } from '../../../../../supervisor/jobs/redis/queues.js';
import type { JobData } from '../../../../../supervisor/jobs/redis/stored-job.js';
import { needs } from '../../../../helpers/needs.js';
import { StoreBench } from '../../../../supervisor/jobs/conformance.js';
import { RedisServer } from '../../../worker/api/store/redis-server.js';
import { eventually } from '../../../../helpers/server.js';
import { openFront, type Front } from './fronts.js';

const isMissing = needs('redis-server');
const QUEUE = nameOf({ model: 'm', version: null, route: '/' });

/** Fields of an event that differ from one job to the next; ours say besides which server it is `by`. */
const OWN = new Set(['jobId', 'delay', 'by']);

/** Longer than any step takes, on any machine. */
const LONG_MS = 60_000;

let redis: RedisServer;
if (isMissing === false) {
  before(async () => (redis = await RedisServer.start()));
  after(() => redis.down());
}

async function beside(
  t: TestContext,
  database: number,
): Promise<Front & { bench: StoreBench; queue: Queue }> {
  const opened = await openFront(redis.port, { database, lockMs: LONG_MS });
  t.after(() => opened.store.close());
  const connection = createNodeRedisClient(opened.link.commands) as never;
  const queue = new Queue(QUEUE, { connection, prefix: PREFIX, skipVersionCheck: true });
  return { ...opened, bench: new StoreBench(opened.store), queue };
}

test("BullMQ's own Queue shows the jobs of each state", { skip: isMissing, timeout: 240_000 }, async (t) => {
  const { store, link } = await openFront(redis.port, { lockMs: LONG_MS });
  t.after(() => store.close());
  const bench = new StoreBench(store);
  const answered = await bench.accept({ priority: 9 });
  const failed = await bench.accept({ priority: 8 });
  const running = await bench.accept({ priority: 7 });
  const waiting = await bench.accept({ body: '{"x":1}', key: { scope: 's', content: 'c' } });
  const delayed = await bench.accept({ delayMs: 60_000 });
  assert.deepEqual(
    [await bench.begin('1'), await bench.begin('2'), await bench.begin('3')],
    [[answered], [failed], [running]],
  );
  await bench.answer(answered, '1', '"out"');
  await bench.fail(failed, '2', new ServeError('SERVE_INFERENCE_FAILED', 'the model is out of tune'));
  store.progress(running, '3', { fraction: 0.5, text: 'half' });
  await store.get(running);

  const name = nameOf({ model: 'm', version: null, route: '/' });
  const connection = createNodeRedisClient(link.commands) as never;
  const queue = new Queue<JobData>(name, { connection, prefix: PREFIX, skipVersionCheck: true });
  const [active] = await queue.getJobs('active');
  assert.deepEqual(
    [active?.id, active?.name, active?.progress],
    [running, '/', { attempt: 1, fraction: 0.5, text: 'half' }],
  );
  const [completed] = await queue.getJobs('completed');
  assert.deepEqual(
    [completed?.id, completed?.returnvalue],
    [answered, { status: 200, contentType: 'application/json', bytes: 5 }],
  );
  const [lost] = await queue.getJobs('failed');
  assert.deepEqual([lost?.id, lost?.failedReason], [failed, 'the model is out of tune']);
  const [prioritized] = await queue.getJobs('prioritized');
  const { record, call, key } = prioritized?.data as JobData;
  assert.deepEqual(
    [record.id, record.model, record.route, call?.bodyBytes, key?.length],
    [waiting, 'm', '/', 7, 43],
  );
  assert.deepEqual(
    (await queue.getJobs('delayed')).map(({ id }) => id),
    [delayed],
  );
});

test("a job lies where BullMQ's own `add` puts it", { skip: isMissing, timeout: 240_000 }, async (t) => {
  const { store, link } = await openFront(redis.port, { database: 1 });
  t.after(() => store.close());
  const bench = new StoreBench(store);
  const client = link.commands;
  const connection = createNodeRedisClient(client) as never;
  const theirs = new Queue('theirs', { connection, prefix: PREFIX, skipVersionCheck: true });
  const layoutOf = async (queue: string, id: string, atMs: number): Promise<unknown> => {
    const at = `${PREFIX}:${queue}:`;
    const { name, priority, delay, ...more } = await client.hGetAll(at + id);
    const events = await client.xRevRange(`${at}events`, '+', '-', { COUNT: 1 });
    return {
      ...{ name, priority, isDelayed: delay !== '0', fields: Object.keys(more).sort() },
      opts: (JSON.parse(more['opts'] ?? '') as { priority: number }).priority,
      prioritized: await client.zScore(`${at}prioritized`, id),
      isDue: (await client.zScore(`${at}delayed`, id)) === (atMs + Number(delay)) * 4096,
      event: Object.entries(events?.[0]?.message ?? {}).filter(([key]) => !OWN.has(key)),
      meta: await client.hGet(`${at}meta`, 'opts.maxLenEvents'),
    };
  };
  const ours = nameOf({ model: 'm', version: null, route: '/' });
  for (const delay of [0, 60_000]) {
    const id = await bench.accept({ priority: 7, delayMs: delay });
    const { timestamp } = await theirs.add('/', {}, { jobId: 'their', priority: 3, delay });
    const ofOurs = Number(await client.hGet(`${PREFIX}:${ours}:${id}`, 'timestamp'));
    assert.deepEqual(await layoutOf(ours, id, ofOurs), await layoutOf('theirs', 'their', timestamp));
    await theirs.remove('their');
  }
});

test(
  "what BullMQ's tools try again goes back: a job that has ended stays so",
  { skip: isMissing, timeout: 240_000 },
  async (t) => {
    const { bench, store, queue } = await beside(t, 2);
    const [answered, failed] = [await bench.accept({ priority: 2 }), await bench.accept({ priority: 1 })];
    await bench.begin('1');
    await bench.begin('2');
    await bench.answer(answered, '1', '"out"');
    await bench.fail(failed, '2');
    const ends = await Promise.all([answered, failed].map((id) => bench.record(id)));
    await queue.retryJobs({ state: 'completed' });
    await queue.retryJobs({ state: 'failed' });
    const waits = async (): Promise<number> =>
      (await queue.getWaitingCount()) + (await queue.getActiveCount());
    await eventually(
      async () => (await bench.begin('again')).length === 0 && (await waits()) === 0,
      60_000,
      () => 'they wait',
    );
    assert.deepEqual(await Promise.all([answered, failed].map((id) => bench.record(id))), ends);
    assert.equal(String(await store.readResult(answered)), '"out"');
    assert.deepEqual([await queue.getCompletedCount(), await queue.getFailedCount()], [1, 1]);
    const [urgent] = [await bench.accept()];
    await (await queue.getJob(urgent))?.changePriority({ priority: 0 });
    let begun: string[] = [];
    await eventually(
      async () => (begun = await bench.begin('c')).length > 0,
      60_000,
      () => 'it does not begin',
    );
    assert.deepEqual(begun, [urgent]);
  },
);

test(
  "what BullMQ's tools add is no job: a copy of one does not run, and others do",
  { skip: isMissing, timeout: 240_000 },
  async (t) => {
    const { bench, queue } = await beside(t, 3);
    const id = await bench.accept();
    const { data } = (await queue.getJob(id)) as { data: object };
    await queue.add('/', data);
    await queue.add('/', { x: 1 }, { priority: 1 });
    await queue.add('/', data, { jobId: await bench.accept({ route: '/other' }) });
    assert.deepEqual([await bench.begin('1'), await bench.begin('2')], [[id], []]);
    assert.deepEqual(await queue.getJobCounts('active', 'wait', 'prioritized'), {
      active: 1,
      wait: 0,
      prioritized: 0,
    });
  },
);

test(
  "what BullMQ's tools remove makes room within seconds, however much it is",
  { skip: isMissing, timeout: 240_000 },
  async (t) => {
    const { bench, queue, link } = await beside(t, 4);
    const ids = await Promise.all(Array.from({ length: 300 }, () => bench.accept()));
    await queue.drain();
    assert.equal(await bench.record(ids[0] as string).catch(() => null), null);
    await eventually(
      async () => (await link.commands.get('banana:bytes')) === '0',
      60_000,
      () => 'they take room',
    );
  },
);

test('the name of a queue is readable, has no colon, and says its place', () => {
  for (const [place, name] of [
    [{ model: 'fill-mask', version: null, route: '/' }, 'fill-mask /'],
    [{ model: 'm', version: '1.0', route: '/render' }, 'm@1.0 /render'],
    [{ model: 'a b', version: '1:2', route: '/a:b%@~' }, 'a~20b@1~3a2 /a~3ab~25~40~7e'],
  ] as const) {
    assert.equal(nameOf(place), name);
    assert.deepEqual(placeIn(name), { ...place, priority: 0 });
  }
});
