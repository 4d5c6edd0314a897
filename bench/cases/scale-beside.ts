/**
 * A steady caller of one model while another one goes from zero workers to four. Each round measures twice without it, which
 * is the noise, then once with it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Bench, BenchCase } from '../case.js';
import { statusOf } from '../servers/banana.js';
import { source, type ChildServer } from '../servers/child-server.js';
import { median } from '../statistics.js';
import { jsonRequest, smallJsonRequest } from './requests.js';

const RATE_PER_SECOND = 100;
const SECONDS = 5;
const DEADLINE_MS = 5000;
const WORKERS = 4;
/** More callers than workers, with calls so long that each worker is worth its start. */
const CALLERS = 16;
const CALL_SECONDS = 0.25;
const BEFORE_MS = 500;
const CALLING_MS = 3500;
const SCALED = 'scaled';

export const scaleBeside: BenchCase = {
  name: 'scale-beside',
  async run(bench) {
    const scaled = {
      app: source('bench/apps/waits.mjs'),
      minWorkers: 0,
      maxWorkers: WORKERS,
      idleTimeout: '1s',
    };
    const server = await bench.startBanana(source('bench/apps/small.mjs'), {
      config: { name: 'steady', models: { [SCALED]: scaled } },
      workers: null,
    });
    const quiet: number[] = [];
    const beside: number[] = [];
    await steadyP99(bench, server, 0); // warms up
    for (let seed = 1; seed <= bench.duration.rounds; seed += 1) {
      quiet.push(await steadyP99(bench, server, seed), await steadyP99(bench, server, seed));
      const [p99] = await Promise.all([steadyP99(bench, server, seed), goToFour(server)]);
      beside.push(p99);
      await untilWorkers(server.url, (count) => count === 0);
    }
    const text = (values: readonly number[]): string => values.map((ms) => ms.toFixed(2)).join(', ');
    bench.note(
      `a steady caller, p99 in ms: ${text(quiet)} alone, ${text(beside)} while another model goes from 0 to ${WORKERS} workers.`,
    );
    return [
      {
        name: `${RATE_PER_SECOND} req/s while another model goes from 0 to ${WORKERS} workers: p99`,
        ours: `${median(beside).toFixed(2)} ms`,
        baseline: `${median(quiet).toFixed(2)} ms alone`,
        value: median(beside) / median(quiet),
        goal: null,
      },
    ];
  },
};

/** @throws an Error if a call of the steady model was not answered */
async function steadyP99(bench: Bench, { url }: ChildServer, seed: number): Promise<number> {
  const { sent, good, latencyMs } = await bench.generator.runOpen({
    request: { ...smallJsonRequest(), url },
    ratePerSecond: RATE_PER_SECOND,
    durationMs: SECONDS * 1000,
    deadlineMs: DEADLINE_MS,
    maxConnections: 64,
    seed,
  });
  if (good < sent) throw new Error(`${sent - good} of ${sent} calls of the steady model were not answered`);
  return latencyMs.p99;
}

/** Calls the other model for some seconds, in which it must get all its workers. */
async function goToFour({ url }: ChildServer): Promise<void> {
  await delay(BEFORE_MS);
  const endAtMs = performance.now() + CALLING_MS;
  const { body, headers } = jsonRequest({ seconds: CALL_SECONDS });
  const callUntilEnd = async (): Promise<void> => {
    while (performance.now() < endAtMs) {
      const answer = await fetch(`${url}/models/${SCALED}/`, { method: 'POST', body, headers });
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`a call of the other model got ${answer.status}: ${text}`);
    }
  };
  const callers = Promise.all(Array.from({ length: CALLERS }, callUntilEnd));
  await Promise.all([callers, untilWorkers(url, (count) => count === WORKERS)]);
}

async function untilWorkers(url: string, isEnough: (count: number) => boolean): Promise<void> {
  for (;;) {
    const { models = [] } = await statusOf(url);
    const workers = models.find(({ name }) => name === SCALED)?.workers ?? [];
    if (isEnough(workers.filter(({ state }) => state === 'idle' || state === 'busy').length)) return;
    await delay(20);
  }
}
