/**
 * Jobs of a model that does nothing in Redis, from the first accept until the last has ended, against BullMQ by itself: its
 * `add` and its own `Worker` in one process, without HTTP and without a process for the model. Also what each takes of Redis.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createNodeRedisClient, Queue, Worker } from 'bullmq';
import { createClient } from 'redis';
import type { Bench, BenchCase } from '../case.js';
import type { Row } from '../report.js';
import { source } from '../servers/child-server.js';
import { startBenchRedis, textOf, type BenchRedis } from '../servers/redis.js';
import { jsonRequest } from './requests.js';

const CALLERS = 32;
const JOBS = 2000;
const IDLE_S = 5;
const AGE_S = 24 * 60 * 60;

export const jobsBullmq: BenchCase = {
  name: 'jobs-bullmq',
  async run(bench) {
    const rows: Row[] = [];
    for (const workers of [1, 8]) {
      const redis = await open(bench);
      const plain = await plainBullmq(bench, redis, workers);
      const ours = await product(bench, await open(bench), workers);
      rows.push({
        name: `jobs in Redis, ${workers} at a time, vs a plain worker of BullMQ`,
        ours: `${ours.toFixed(0)} /s`,
        baseline: `${plain.toFixed(0)} /s`,
        value: ours / plain,
        goal: { must: 0.7, better: 'higher', unit: 'x' },
      });
    }
    return rows;
  },
};

function open(bench: Bench): Promise<BenchRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-bench-'));
  bench.keep({ stop: () => Promise.resolve(rmSync(folder, { recursive: true, force: true })) });
  return startBenchRedis(bench, folder);
}

async function product(bench: Bench, redis: BenchRedis, workers: number): Promise<number> {
  const flags = ['--jobs', redis.url, '--workers', String(workers)];
  const server = await bench.startBanana(source('bench/apps/begun.mjs'), { flags });
  const idle = await redis.use();
  await delay(IDLE_S * 1000);
  const idlePerSecond = ((await redis.use()).commands - idle.commands) / IDLE_S;
  const { body, headers } = jsonRequest({});
  const before = await redis.use();
  const fromMs = performance.now();
  const { ok } = await bench.generator.runClosed({
    request: { url: `${server.url}/background`, body, headers },
    connections: CALLERS,
    durationMs: Infinity,
    maxRequests: JOBS,
  });
  for (let ended = 0; ended < ok;) {
    await delay(50);
    ended = await redis.ended();
  }
  const perSecond = ok / ((performance.now() - fromMs) / 1000);
  const idleText = `${idlePerSecond.toFixed(0)} commands a second while nothing happens`;
  bench.note(`jobs in Redis, ${workers} at a time: ${textOf(before, await redis.use(), ok)}; ${idleText}`);
  await server.stop();
  return perSecond;
}

async function plainBullmq(bench: Bench, redis: BenchRedis, concurrency: number): Promise<number> {
  const clients = [createClient({ url: redis.url }), createClient({ url: redis.url })] as const;
  const [ofQueue, ofWorker] = clients.map((client) => createNodeRedisClient(client as never));
  const queue = new Queue('plain', { connection: ofQueue as never });
  const worker = new Worker('plain', () => Promise.resolve({ begunAtMs: performance.now() }), {
    connection: ofWorker as never,
    concurrency,
    removeOnComplete: { age: AGE_S },
  });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  let ended = 0;
  const all = new Promise<void>((resolve) => {
    worker.on('completed', () => {
      if ((ended += 1) === JOBS) resolve();
    });
  });
  const before = await redis.use();
  const fromMs = performance.now();
  let added = 0;
  const caller = async (): Promise<void> => {
    while (added < JOBS) {
      added += 1;
      await queue.add('plain', {}, { removeOnComplete: { age: AGE_S } });
    }
  };
  await Promise.all([all, ...Array.from({ length: CALLERS }, caller)]);
  const perSecond = JOBS / ((performance.now() - fromMs) / 1000);
  bench.note(`BullMQ by itself, ${concurrency} at a time: ${textOf(before, await redis.use(), JOBS)}`);
  await worker.close();
  await queue.close();
  for (const client of clients) if (client.isOpen) client.destroy();
  return perSecond;
}
