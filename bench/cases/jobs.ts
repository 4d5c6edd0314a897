/** Jobs of a model that does nothing, in each store: accepts, jobs per second, and the time to their begin, against plain calls. */
import { mkdtempSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, BenchCase } from '../case.js';
import type { ClosedResult } from '../load/plan.js';
import { rssMbOf } from '../proc.js';
import type { Row } from '../report.js';
import { startBenchRedis, textOf } from '../servers/redis.js';
import { source, type ChildServer } from '../servers/child-server.js';
import { Samples, type Percentiles } from '../statistics.js';
import { jsonRequest } from './requests.js';

const CALLERS = 32;
/** Jobs and calls whose begins are looked at. */
const LOOKS = 500;
/** These are accepted and do not begin. */
const LATER = { 'X-Banana-Job-Delay-Seconds': '86400' };

const STORES = ['memory', 'local', 'redis', 'redis, 3 servers'] as const;

export const jobs: BenchCase = {
  name: 'jobs',
  async run(bench) {
    const rows: Row[] = [];
    for (const store of STORES) rows.push(...(await measure(bench, store)));
    return rows;
  },
};

async function measure(bench: Bench, store: (typeof STORES)[number]): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-bench-'));
  bench.keep({ stop: () => Promise.resolve(rmSync(folder, { recursive: true, force: true })) });
  const redis = store.startsWith('redis') ? await startBenchRedis(bench, folder) : null;
  const place = redis?.url ?? (store === 'local' ? `local:${folder}/jobs` : store);
  const flags = ['--jobs', place, '--job-bytes', '4gb'];
  const start = (): Promise<ChildServer> => bench.startBanana(source('bench/apps/begun.mjs'), { flags });
  const server = await start();
  const others = store.endsWith('3 servers') ? [await start(), await start()] : [];
  const { url } = server;
  const plain = await load(bench, url, '/', CALLERS);
  const beganPlain = await lookAtBegins(() => begunByCall(url));
  const began = await lookAtBegins(() => begunByJob(url));
  const before = await redis?.use();
  const { jobsPerSecond, count } = await throughput(bench, url);
  if (redis !== null && before !== undefined)
    bench.note(`jobs in ${store}: ${textOf(before, await redis.use(), count)}`);
  const rssMb = rssMbOf(server.pid);
  const alone = await load(bench, url, '/background', 1, LATER);
  const together = await load(bench, url, '/background', CALLERS, LATER);
  for (const one of [...others, server]) await one.stop();
  bench.note(`jobs in ${store}: after ${count} jobs the front has ${rssMb.toFixed(0)} MB.`);
  const name = `jobs in ${store}`;
  const accepts = [alone, together].map((result, i) => ({
    name: `${name}: accepts, ${i === 0 ? 'alone' : `c=${CALLERS}`}, vs plain calls c=${CALLERS}`,
    ours: `${perSecond(result).toFixed(0)} /s`,
    baseline: `${perSecond(plain).toFixed(0)} /s`,
    value: perSecond(result) / perSecond(plain),
    goal: null,
  }));
  return [
    ...accepts,
    {
      name: `${name}: jobs, c=${CALLERS}, vs plain calls`,
      ours: `${jobsPerSecond.toFixed(0)} /s`,
      baseline: `${perSecond(plain).toFixed(0)} /s`,
      value: jobsPerSecond / perSecond(plain),
      goal: null,
    },
    {
      name: `${name}: call to begin, one at a time, p50, vs a plain call`,
      ours: ms(began.p50),
      baseline: ms(beganPlain.p50),
      value: began.p50 / beganPlain.p50,
      goal: null,
    },
    {
      name: `${name}: call to begin, one at a time, p99, vs a plain call`,
      ours: ms(began.p99),
      baseline: ms(beganPlain.p99),
      value: began.p99 / beganPlain.p99,
      goal: null,
    },
  ];
}

async function load(
  bench: Bench,
  url: string,
  path: string,
  connections: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<ClosedResult> {
  const { body, headers: types } = jsonRequest({});
  const result = await bench.generator.runClosed({
    request: { url: url + path, body, headers: { ...types, ...headers } },
    connections,
    durationMs: bench.secondsAtLeast(2) * 1000,
    maxRequests: Infinity,
  });
  if (result.failed > 0)
    throw new Error(`${result.failed} of ${result.ok + result.failed} calls of ${path} failed`);
  return result;
}

/** From the first accept until no job is left. */
async function throughput(bench: Bench, url: string): Promise<{ jobsPerSecond: number; count: number }> {
  const fromMs = performance.now();
  const { ok: count } = await load(bench, url, '/background', CALLERS);
  while (await isAnyLeft(url)) await delay(50);
  return { jobsPerSecond: count / ((performance.now() - fromMs) / 1000), count };
}

async function isAnyLeft(url: string): Promise<boolean> {
  const states = ['queued', 'running'].map(async (state) => {
    const page = (await (await fetch(`${url}/_k/jobs?state=${state}&limit=1`)).json()) as { jobs: unknown[] };
    return page.jobs.length > 0;
  });
  return (await Promise.all(states)).some((isLeft) => isLeft);
}

async function lookAtBegins(begin: () => Promise<number>): Promise<Percentiles> {
  const samples = new Samples(LOOKS);
  for (let i = 0; i < LOOKS; i += 1) {
    const fromMs = performance.timeOrigin + performance.now();
    samples.add((await begin()) - fromMs);
  }
  return samples.percentiles();
}

async function begunByCall(url: string): Promise<number> {
  return begunIn(await (await fetch(url, { method: 'POST', ...jsonRequest({}) })).text());
}

async function begunByJob(url: string): Promise<number> {
  const accepted = await fetch(`${url}/background`, { method: 'POST', ...jsonRequest({}) });
  await accepted.text();
  const id = accepted.headers.get('x-banana-job-id');
  const page = (await (await fetch(`${url}/_k/jobs/${id}?wait=20s`)).json()) as { result: unknown };
  return begunIn(JSON.stringify(page.result));
}

function begunIn(text: string): number {
  return (JSON.parse(text) as { begunAtMs: number }).begunAtMs;
}

function perSecond({ ok, elapsedMs }: ClosedResult): number {
  return ok / (elapsedMs / 1000);
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}
