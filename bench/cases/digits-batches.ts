/**
 * The digits model in batches: what do batches do to calls per second, and does a run cost in a worker what it costs in a
 * bare process?
 *
 * A run is dear after a pause, in which the caches and the core do something else: so the bare process waits for a message
 * as the worker does, and as long between two runs of each size as was measured in the worker just before.
 */
import type { BenchCase, Bench } from '../case.js';
import { postOnce } from '../post-once.js';
import { measureInTurn, measureOnce, type Load, type Round, type Side } from '../rounds.js';
import { BareDigits, type Told } from '../servers/bare-digits.js';
import { source } from '../servers/child-server.js';
import { cpuNote, rateRow, sideOf } from '../sides.js';
import { median } from '../statistics.js';
import { digitRequest } from './requests.js';

/** With so many, batches of these sizes come about. */
const CALLERS = [1, 4, 8, 16, 32, 64];
const BARE_MS = 500;
const WARM_UP_MS = 3000;

/** A size of which both noted enough in one turn. */
interface Pair {
  readonly served: Told;
  readonly bare: Told;
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
    const sides = [await start(32), await start(1)] as const;
    const load = { request: digitRequest(), connections: 64 };
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('digits, c=64', sides, results));
    const [ours, single] = results as [Round[], Round[]];
    const bySize = groupBySize(await pairsInTurn(bench, sides[0], load), bench.duration.rounds);
    bench.note(sizesNote(bySize));
    const [fallsServed, fallsBare] = [falls(bySize, msServed), falls(bySize, msBare)];
    return [
      rateRow('digits model in batches of up to 32, c=64, vs one call at a time', [ours, single], {
        must: 0.95,
        better: 'higher',
        unit: 'x',
      }),
      {
        name: 'digits model: how far its time of a call falls with the size of the batch, off that of a bare process',
        ours: `${Math.max(...fallsServed).toFixed(1)} times`,
        baseline: `${Math.max(...fallsBare).toFixed(1)} times`,
        value: Math.max(...fallsServed.map((fall, i) => 100 * Math.abs(fall / (fallsBare[i] as number) - 1))),
        goal: { must: 20, better: 'lower', unit: '%' },
      },
    ];
  },
};

/** Runs of the server and of the bare process, in turn, size by size. */
async function pairsInTurn(bench: Bench, side: Side, load: Load): Promise<Pair[]> {
  const bare = await BareDigits.start(load.request.body as Buffer);
  bench.keep(bare);
  await bare.run(8, 0, WARM_UP_MS);
  const pairs: Pair[] = [];
  for (let round = 0; round < bench.duration.rounds; round += 1) {
    for (const connections of CALLERS) {
      await measureOnce(bench.generator, side, { ...load, connections }, bench.duration.secondsPerRound / 2);
      for (const served of await tellOf(side)) {
        const told = await atPaceOf(bare, served);
        if (told !== undefined) pairs.push({ served, bare: told });
      }
    }
  }
  return pairs;
}

/** The bare process's note for the same size with the nearest pause between two runs. */
async function atPaceOf(bare: BareDigits, { size, gapMs }: Told): Promise<Told | undefined> {
  await bare.run(size, 0, BARE_MS / 3);
  const [unpaced] = await bare.tell();
  if (unpaced === undefined) return undefined;
  await bare.run(size, Math.max(0, gapMs - unpaced.gapMs), BARE_MS);
  return (await bare.tell())[0];
}

async function tellOf({ url }: Side): Promise<readonly Told[]> {
  const { status, text } = await postOnce(url, { told: true });
  if (status !== 200) throw new Error(`the app told nothing: ${text}`);
  return JSON.parse(text) as Told[];
}

/** By size, the smallest first. A size with fewer runs than `least` is left out. */
function groupBySize(pairs: readonly Pair[], least: number): [size: number, pairs: Pair[]][] {
  const bySize = new Map<number, Pair[]>();
  for (const pair of pairs) {
    const { size } = pair.served;
    bySize.set(size, [...(bySize.get(size) ?? []), pair]);
  }
  return [...bySize].filter(([, ofSize]) => ofSize.length >= least).sort(([a], [b]) => a - b);
}

type BySize = ReturnType<typeof groupBySize>;

const msServed = ({ served }: Pair): number => served.ms;
const msBare = ({ bare }: Pair): number => bare.ms;

/** By how much a call is cheaper in a batch of each size than alone. */
function falls(bySize: BySize, msOf: (pair: Pair) => number): number[] {
  const perCall = bySize.map(([size, pairs]) => median(pairs.map(msOf)) / size);
  return perCall.map((ms) => (perCall[0] as number) / ms);
}

function sizesNote(bySize: BySize): string {
  const sizes = bySize.map(([size, pairs]) => {
    const us = (msOf: (pair: Pair) => number): string => ((1000 * median(pairs.map(msOf))) / size).toFixed(1);
    const gap = (gapOf: (pair: Pair) => number): string => (1000 * median(pairs.map(gapOf))).toFixed(0);
    const runs = pairs.reduce((sum, { served }) => sum + served.runs, 0);
    const gaps = `${gap(({ served }) => served.gapMs)} and ${gap(({ bare }) => bare.gapMs)} us`;
    return `${size}: ${us(msServed)} us, bare ${us(msBare)}, tight loop ${us(({ served }) => served.loopMs)} (${runs} runs, pauses of ${gaps})`;
  });
  return `digits, model time of a call by the size of its batch: ${sizes.join('; ')}.`;
}
