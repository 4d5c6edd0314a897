/**
 * A model whose runs cost 5 ms and 0.2 ms for each input, in batches of up to 32: do the workers stay as busy as the rule
 * allows, and does a call wait longer than the rule allows?
 */
import { simulate, type Simulated } from '../../test/supervisor/dispatch/simulator.js';
import type { Bench, BenchCase } from '../case.js';
import type { OpenResult } from '../load/plan.js';
import type { Row } from '../report.js';
import { measureOnce, type Round, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, rateText, sideOf } from '../sides.js';
import { median } from '../statistics.js';
import { jsonRequest } from './requests.js';

const [RUN_MS, ITEM_MS, BATCH_SIZE, DELAY_MS] = [5, 0.2, 32, 5];
/** Calls per second of a worker whose batches are all full. */
const CAPACITY = (1000 * BATCH_SIZE) / (RUN_MS + ITEM_MS * BATCH_SIZE);
const SHARE = 0.8;
const PATIENCE_MS = 5000;

export const batching: BenchCase = {
  name: 'batching',
  async run(bench) {
    const env = { BANANA_BATCH_SIZE: String(BATCH_SIZE), BANANA_MAX_BATCH_DELAY: `${DELAY_MS}ms` };
    const server = await bench.startBanana(source('bench/apps/batch.mjs'), { env });
    const side = await sideOf('ours', server);
    return [await closedLoop(bench, side), await openLoop(bench, side)];
  },
};

async function closedLoop(bench: Bench, side: Side): Promise<Row> {
  const { generator, duration } = bench;
  const load = { request: jsonRequest({}), connections: 2 * BATCH_SIZE };
  await measureOnce(generator, side, load, 2 * duration.secondsPerRound); // warm-up
  const ours: Round[] = [];
  for (let round = 0; round < duration.rounds; round += 1) {
    ours.push(await measureOnce(generator, side, load, duration.secondsPerRound));
  }
  bench.note(cpuNote('batches of a 5 ms + 0.2 ms model, c=64', [side], [ours]));
  return {
    name: 'batches of up to 32, 5 ms + 0.2 ms each, c=64: of full batches without a pause',
    ours: rateText(ours),
    baseline: `${CAPACITY.toFixed(0)} calls/s`,
    value: median(ours.map(({ perSecond }) => (100 * perSecond) / CAPACITY)),
    goal: { must: 95, better: 'higher', unit: '%' },
  };
}

async function openLoop(bench: Bench, side: Side): Promise<Row> {
  const seconds = bench.secondsAtLeast(4);
  const runs: OpenResult[] = [];
  for (let round = 0; round < bench.duration.rounds; round += 1) {
    const request = { ...jsonRequest({}), url: side.url };
    const rate = { ratePerSecond: SHARE * CAPACITY, durationMs: seconds * 1000 };
    const limits = { deadlineMs: PATIENCE_MS, maxConnections: 1024, seed: round + 1 };
    runs.push(await bench.generator.runOpen({ request, ...rate, ...limits }));
  }
  const ideals = runs.map(({ sentAtMs }) => p99Of(ideal(sentAtMs)));
  const ours = runs.map(({ latencyMs }) => latencyMs.p99);
  const failed = runs.reduce((sum, { lost, late }) => sum + lost + late, 0);
  const lagMs = median(runs.map(({ sendLagMs }) => sendLagMs.p99));
  bench.note(`open loop of the batches: ${failed} calls failed; written ${lagMs.toFixed(1)} ms late (p99).`);
  return {
    name: 'the same, open loop at 80% of that: p99, of a queue with this rule and no transport',
    ours: `${median(ours).toFixed(1)} ms`,
    baseline: `${median(ideals).toFixed(1)} ms`,
    value: median(ours.map((p99, i) => p99 / (ideals[i] as number))),
    goal: { must: 1.5, better: 'lower', unit: 'x' },
  };
}

/** The same arrivals, the same rule, the run times that the model has, and nothing else that takes time. */
function ideal(sentAtMs: Float64Array): Simulated {
  return simulate({
    arrivals: [...sentAtMs].map((atMs) => ({ atMs })),
    workers: 1,
    rules: { batchSize: BATCH_SIZE, maxBatchDelayMs: DELAY_MS },
    runMs: (calls) => RUN_MS + ITEM_MS * calls,
    isKnown: true,
  });
}

function p99Of({ calls }: Simulated): number {
  const latencies = calls.map(({ atMs, endedAtMs }) => endedAtMs - atMs).sort((a, b) => a - b);
  return latencies[Math.ceil(0.99 * latencies.length) - 1] as number;
}
