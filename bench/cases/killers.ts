/** One client whose every call kills the worker that runs it: what is left for the others? */
import { setTimeout as delay } from 'node:timers/promises';
import type { Bench, BenchCase } from '../case.js';
import type { ClosedResult } from '../load/plan.js';
import { postOnce } from '../post-once.js';
import type { Row } from '../report.js';
import { source } from '../servers/child-server.js';
import { jsonRequest } from './requests.js';

const WORKERS = [1, 4];
const CALLERS = 8;
/** Long enough for a pause between restarts that grows with every death to show itself. */
const MIN_SECONDS = 10;
/** A killer that is refused asks again after this pause. */
const REFUSED_PAUSE_MS = 10;

export const killers: BenchCase = {
  name: 'killers',
  async run(bench) {
    const rows: Row[] = [];
    for (const workers of WORKERS) rows.push(await attack(bench, workers));
    return rows;
  },
};

async function attack(bench: Bench, workers: number): Promise<Row> {
  const who = `${workers} ${workers === 1 ? 'worker' : 'workers'}`;
  const server = await bench.startBanana(source('bench/apps/killable.mjs'), { workers });
  const alone = await sendGoodCalls(bench, server.url, bench.duration.secondsPerRound);
  const stop = new AbortController();
  const killing = killUntil(server.url, stop.signal);
  const beside = await sendGoodCalls(bench, server.url, bench.secondsAtLeast(MIN_SECONDS));
  stop.abort();
  const kills = await killing;
  await server.stop();
  bench.note(
    `killer, ${who}: ${(kills / seconds(beside)).toFixed(1)} kills/s; of ${beside.ok + beside.failed} good ` +
      `calls ${beside.failed} were lost or refused, p99 ${beside.latencyMs.p99.toFixed(0)} ms.`,
  );
  return {
    name: `${CALLERS} callers beside a killer, ${who}: longest wait of a good call`,
    ours: `${rate(beside)} answers/s`,
    baseline: `${rate(alone)} answers/s without it`,
    value: beside.latencyMs.max,
    goal: { must: 1000, better: 'lower', unit: 'ms' },
  };
}

function sendGoodCalls(bench: Bench, url: string, forSeconds: number): Promise<ClosedResult> {
  return bench.generator.runClosed({
    request: { ...jsonRequest({ kill: false }), url },
    connections: CALLERS,
    durationMs: forSeconds * 1000,
    maxRequests: Infinity,
  });
}

/** Sends its next call when its last one is answered, whatever the answer. Resolves with the number of deaths. */
async function killUntil(url: string, signal: AbortSignal): Promise<number> {
  let kills = 0;
  while (!signal.aborted) {
    const { status } = await postOnce(url, { kill: true });
    if (status === 500) kills += 1;
    else await delay(REFUSED_PAUSE_MS);
  }
  return kills;
}

function rate(result: ClosedResult): string {
  return (result.ok / seconds(result)).toFixed(0);
}

function seconds({ elapsedMs }: ClosedResult): number {
  return elapsedMs / 1000;
}
