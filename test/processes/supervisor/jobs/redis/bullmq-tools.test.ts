/** Jobs are BullMQ's jobs: its own `Queue`, which dashboards use, reads where each is, with names, data, progress and reasons. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createNodeRedisClient, Queue } from 'bullmq';
import { ServeError } from '../../../../../protocol/errors.js';
import { nameOf, placeIn, PREFIX } from '../../../../../supervisor/jobs/redis/queue-name.js';
import type { JobData } from '../../../../../supervisor/jobs/redis/stored-job.js';
import { needs } from '../../../../helpers/needs.js';
import { StoreBench } from '../../../../supervisor/jobs/conformance.js';
import { RedisServer } from '../../../worker/api/store/redis-server.js';
import { openFront } from './fronts.js';

const isMissing = needs('redis-server');
let redis: RedisServer;
if (isMissing === false) {
  before(async () => (redis = await RedisServer.start()));
  after(() => redis.down());
}

test("BullMQ's own Queue shows the jobs of each state", { skip: isMissing, timeout: 60_000 }, async (t) => {
  const { store, link } = await openFront(redis.port);
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

test("a job lies where BullMQ's own `add` puts it", { skip: isMissing, timeout: 60_000 }, async (t) => {
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
      event: Object.entries(events?.[0]?.message ?? {}).filter(([key]) => key !== 'jobId' && key !== 'delay'),
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

test('the name of a queue is readable, has no colon, and says its place', () => {
  for (const [place, name] of [
    [{ model: 'fill-mask', version: null, route: '/' }, 'fill-mask /'],
    [{ model: 'm', version: '1.0', route: '/render' }, 'm@1.0 /render'],
    [{ model: 'a b', version: '1:2', route: '/a:b%@~' }, 'a~20b@1~3a2 /a~3ab~25~40~7e'],
  ] as const) {
    assert.equal(nameOf(place), name);
    assert.deepEqual(placeIn(name), place);
  }
});
