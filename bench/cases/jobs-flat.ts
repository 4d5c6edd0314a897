/**
 * Many jobs in each store, which forgets them soon: does anything stay behind in the front? With the default rounds and seconds
 * 100,000 jobs: each round is a step of 10,000 for each second.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bench, BenchCase } from '../case.js';
import { readAfterGc, type Reading } from '../memory.js';
import type { Row } from '../report.js';
import { source } from '../servers/child-server.js';
import { startBenchRedis } from '../servers/redis.js';
import { jsonRequest } from './requests.js';

const JOBS_A_SECOND = 10_000;
const CALLERS = 32;
const FORGOTTEN_LIMIT_MS = 10 * 60_000;

type Store = 'local' | 'memory' | 'redis';

/** `jobs-flat`, `jobs-flat-memory`, `jobs-flat-redis`. */
export const jobsFlat: readonly BenchCase[] = [
  caseOf('jobs-flat', 'local'),
  caseOf('jobs-flat-memory', 'memory'),
  caseOf('jobs-flat-redis', 'redis'),
];

function caseOf(name: string, store: Store): BenchCase {
  return { name, run: (bench) => measure(bench, store) };
}

async function measure(bench: Bench, store: Store): Promise<Row[]> {
  const { rounds, secondsPerRound } = bench.duration;
  const stepJobs = Math.round(JOBS_A_SECOND * secondsPerRound);
  const folder = mkdtempSync(join(tmpdir(), 'banana-bench-'));
  bench.keep({ stop: () => Promise.resolve(rmSync(folder, { recursive: true, force: true })) });
  const place =
    store === 'redis'
      ? (await startBenchRedis(bench, folder)).url
      : store === 'local'
        ? `local:${folder}/jobs`
        : store;
  const server = await bench.startBanana(source('bench/apps/begun.mjs'), {
    flags: ['--jobs', place, '--job-retention', '5s'],
    preload: 'servers/preload-gc.js',
  });
  const readings: Reading[] = [];
  for (let step = 0; step < rounds; step += 1) {
    await sendJobs(bench, server.url, stepJobs);
    await untilForgotten(server.url);
    readings.push(await readAfterGc(server.pid));
  }
  await server.stop(); // before its folder goes
  const first = readings[0] as Reading;
  const last = readings.at(-1) as Reading;
  const name = `${stepJobs * rounds} jobs in ${store}, front`;
  return [
    {
      name: `${name}: RSS after GC, growth after the first ${stepJobs}`,
      ours: `${readings.map(({ rssMb }) => rssMb.toFixed(1)).join(', ')} MB`,
      baseline: '',
      value: last.rssMb - first.rssMb,
      goal: { must: 5, better: 'lower', unit: 'MB' },
    },
    {
      name: `${name}: open files, growth after the first ${stepJobs}`,
      ours: readings.map(({ files }) => files).join(', '),
      baseline: '',
      value: last.files - first.files,
      goal: { must: 0, better: 'lower', unit: 'fds' },
    },
  ];
}

async function sendJobs(bench: Bench, url: string, count: number): Promise<void> {
  const { ok, failed } = await bench.generator.runClosed({
    request: { ...jsonRequest({}), url: `${url}/background` },
    connections: CALLERS,
    durationMs: Infinity,
    maxRequests: count,
  });
  if (ok !== count) throw new Error(`${ok} of ${count} jobs were accepted, ${failed} failed`);
}

/** All jobs have ended, and the store has dropped them. */
async function untilForgotten(url: string): Promise<void> {
  const endMs = performance.now() + FORGOTTEN_LIMIT_MS;
  for (;;) {
    const { jobs } = (await (await fetch(`${url}/_k/jobs?limit=1`)).json()) as { jobs: unknown[] };
    if (jobs.length === 0) return;
    if (performance.now() > endMs) throw new Error('the store still has jobs');
    await delay(200);
  }
}
