/** Thousands wait at one server for a job that another one runs, over one Redis: does each poll cost Redis something? */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import type { ChildServer } from '../servers/child-server.js';
import { source } from '../servers/child-server.js';
import { startBenchRedis, type BenchRedis } from '../servers/redis.js';
import { openPoll, POLLS, probe, whenTold } from './long-polls.js';

const ARRIVAL_S = 5;
const COUNT_S = 5;
const MIN_PROBE_S = 4;

export const jobsPolls: BenchCase = {
  name: 'jobs-polls',
  async run(bench) {
    const probeS = bench.secondsAtLeast(MIN_PROBE_S);
    const folder = mkdtempSync(join(tmpdir(), 'banana-bench-'));
    bench.keep({ stop: () => Promise.resolve(rmSync(folder, { recursive: true, force: true })) });
    const redis = await startBenchRedis(bench, folder);
    const start = (): Promise<ChildServer> =>
      bench.startBanana(source('bench/apps/waits.mjs'), { flags: ['--jobs', redis.url] });
    const asked = await start();
    const runs = await start();
    const seconds = 2 * ARRIVAL_S + 2 * COUNT_S + probeS;
    // The only worker of the server that is asked has a call of its own, so it does not run the job.
    const busy = postOnce(`${asked.url}/`, { seconds: seconds + ARRIVAL_S });
    await delay(500);
    const started = await postOnce(`${runs.url}/start/v2/`, { modelInputs: { seconds } });
    const { callID } = JSON.parse(started.text) as { callID: string };
    await delay(1000);
    const few = await commandsPerSecond(redis);
    const before = await probe(asked.url, 1);
    const polls = await Promise.all(Array.from({ length: POLLS }, () => openPoll(asked.url, callID)));
    const told = Promise.all(polls.map(async (socket) => performance.timeOrigin + (await whenTold(socket))));
    await delay(ARRIVAL_S * 1000); // each has asked for the job once
    const many = await commandsPerSecond(redis);
    const during = await probe(asked.url, probeS);
    const lastToldMs = Math.max(...(await told));
    const { jobs } = (await (await fetch(`${runs.url}/_k/jobs?limit=1`)).json()) as {
      jobs: readonly { readonly endedAt: string }[];
    };
    const endedMs = Date.parse(jobs[0]?.endedAt ?? '');
    await busy;
    for (const server of [asked, runs]) await server.stop();
    const name = `${POLLS} long polls of a job that another server runs`;
    return [
      {
        name: `${name}: p99 of /readyz meanwhile`,
        ours: `${during.p99.toFixed(2)} ms`,
        baseline: `${before.p99.toFixed(2)} ms`,
        value: during.p99,
        goal: { must: 20, better: 'lower', unit: 'ms' },
      },
      {
        name: `${name}: commands of Redis while they are held, beside those without them`,
        ours: `${many.toFixed(1)} /s`,
        baseline: `${few.toFixed(1)} /s`,
        value: many - few,
        goal: { must: 10, better: 'lower', unit: '/s' },
      },
      {
        name: `${name}: from the outcome until the last is told`,
        ours: `${(lastToldMs - endedMs).toFixed(0)} ms`,
        baseline: '',
        value: lastToldMs - endedMs,
        goal: null,
      },
    ];
  },
};

async function commandsPerSecond(redis: BenchRedis): Promise<number> {
  const before = await redis.use();
  await delay(COUNT_S * 1000);
  return ((await redis.use()).commands - before.commands) / COUNT_S;
}
