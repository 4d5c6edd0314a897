/** Calls that wait 10 ms: does the dispatcher ever leave a worker, or a place in one that runs several, idle? */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { BenchCase } from '../case.js';
import type { Goal } from '../report.js';
import { measureOnce, type Round } from '../rounds.js';
import { compiled, source } from '../servers/child-server.js';
import { cpuNote, rateText, sideOf } from '../sides.js';
import { median } from '../statistics.js';
import { jsonRequest } from './requests.js';

/** Rounds are so many times longer here: the waiting at the beginning and the end of a run, 30 ms together, must not look like an idle worker. */
const LONGER = 4;

interface Sleepers {
  readonly what: string;
  readonly app: string;
  readonly workers: number;
  /** Calls that wait at the same time, in all workers. */
  readonly places: number;
  readonly goal: Goal;
}

export const sleep = sleepCase('sleep', {
  what: '4 workers x 10 ms sleep',
  app: source('bench/apps/sleep.mjs'),
  workers: 4,
  places: 4,
  goal: { must: 98, stretch: 99.5, better: 'higher', unit: '%' },
});

export const concurrency = sleepCase('concurrency', {
  what: 'concurrency 8 x 10 ms sleep',
  app: source('bench/apps/sleep-eight.mjs'),
  workers: 1,
  places: 8,
  goal: { must: 97, stretch: 99, better: 'higher', unit: '%' },
});

function sleepCase(name: string, { what, app, workers, places, goal }: Sleepers): BenchCase {
  return {
    name,
    async run(bench) {
      const { rounds } = bench.duration;
      const secondsPerRound = LONGER * bench.duration.secondsPerRound;
      const server = await bench.startBanana(app, { workers });
      const side = await sideOf('ours', server);
      const load = { request: jsonRequest({}), connections: 100 };
      await measureOnce(bench.generator, side, load, secondsPerRound); // warm-up
      const ours: Round[] = [];
      const alone: number[] = [];
      for (let round = 0; round < rounds; round += 1) {
        ours.push(await measureOnce(bench.generator, side, load, secondsPerRound));
        alone.push(await loopsAlone(app, places, secondsPerRound * 1000));
      }
      bench.note(cpuNote(what, [side], [ours]));
      return [
        {
          name: `${what}, c=100, of the loops alone`,
          ours: rateText(ours, 1),
          baseline: `${median(alone).toFixed(1)} calls/s`,
          value: median(ours.map(({ perSecond }, i) => (100 * perSecond) / (alone[i] as number))),
          goal,
        },
      ];
    },
  };
}

/** Calls per second of so many bare loops, each in its own process. */
async function loopsAlone(app: string, count: number, durationMs: number): Promise<number> {
  const loops = Array.from({ length: count }, async () => {
    const args = [compiled('loop-main.js'), app, String(durationMs)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    return Number(stdout);
  });
  return (await Promise.all(loops)).reduce((sum, rate) => sum + rate, 0);
}
