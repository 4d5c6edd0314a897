/** The digits model in batches: does a run cost in the worker what it costs alone, and what do batches do to calls per second? */
import type { BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import { measureInTurn, measureOnce, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, rateRow, sideOf } from '../sides.js';
import { digitRequest } from './requests.js';

/** With so many, batches of these sizes come about. */
const CALLERS = [1, 4, 8, 16, 32];

/** What the app noted of the runs of one size. */
interface Told {
  readonly size: number;
  readonly runs: number;
  readonly servedMs: number;
  readonly aloneMs: number;
}

export const digitsBatches: BenchCase = {
  name: 'digits-batches',
  async run(bench) {
    const app = source('bench/apps/digits-timed.ts');
    const start = async (batchSize: number): Promise<Side> =>
      sideOf(
        `batches of up to ${batchSize}`,
        await bench.startBanana(app, { env: { BANANA_BATCH_SIZE: String(batchSize) } }),
      );
    const sides = [await start(32), await start(1)];
    const [batched] = sides as [Side, Side];
    const load = { request: digitRequest(), connections: 64 };
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('digits, c=64', sides, results));
    for (const connections of CALLERS) {
      await measureOnce(bench.generator, batched, { ...load, connections }, bench.duration.secondsPerRound);
    }
    const told = await tellOf(batched);
    bench.note(sizesNote(told));
    const alone = falls(told, ({ aloneMs }) => aloneMs);
    const [ours = [], single = []] = results;
    return [
      rateRow('digits model in batches of up to 32, c=64, vs one call at a time', [ours, single], {
        must: 0.95,
        better: 'higher',
        unit: 'x',
      }),
      {
        name: 'digits model: how far its time of a call falls with the size of the batch, of the same alone',
        ours: fallText(told, ({ servedMs }) => servedMs),
        baseline: fallText(told, ({ aloneMs }) => aloneMs),
        value: Math.min(
          ...falls(told, ({ servedMs }) => servedMs).map((fall, i) => fall / (alone[i] as number)),
        ),
        goal: { must: 0.8, better: 'higher', unit: 'x' },
      },
    ];
  },
};

/** By how much a call is cheaper in a batch of each size than alone. */
function falls(told: readonly Told[], msOf: (told: Told) => number): number[] {
  const [single] = told as [Told];
  return told.map((one) => msOf(single) / (msOf(one) / one.size));
}

function fallText(told: readonly Told[], msOf: (told: Told) => number): string {
  return `${Math.max(...falls(told, msOf)).toFixed(1)} times`;
}

async function tellOf({ url }: Side): Promise<readonly Told[]> {
  const { status, text } = await postOnce(url, { told: true });
  if (status !== 200) throw new Error(`the app told nothing: ${text}`);
  return JSON.parse(text) as Told[];
}

function sizesNote(told: readonly Told[]): string {
  const us = (ms: number, size: number): string => ((1000 * ms) / size).toFixed(1);
  const sizes = told.map(({ size, runs, servedMs, aloneMs }) => {
    return `${size}: ${us(servedMs, size)} us, alone ${us(aloneMs, size)} us (${runs} runs)`;
  });
  return `digits, model time of a call by the size of its batch: ${sizes.join('; ')}.`;
}
