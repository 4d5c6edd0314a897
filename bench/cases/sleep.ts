/** Four workers that wait 10 ms per call: does the dispatcher ever leave one idle? */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { BenchCase } from '../case.js';
import { measureOnce, type Round } from '../rounds.js';
import { compiled, source } from '../servers/child-server.js';
import { cpuNote, rateText, sideOf } from '../sides.js';
import { median } from '../statistics.js';
import { jsonRequest } from './requests.js';

const WORKERS = 4;
/** Rounds are so many times longer here: the waiting at the beginning and the end of a run, 30 ms together, must not look like an idle worker. */
const LONGER = 4;
const APP = source('bench/apps/sleep.mjs');

export const sleep: BenchCase = {
  name: 'sleep',
  async run(bench) {
    const { rounds } = bench.duration;
    const secondsPerRound = LONGER * bench.duration.secondsPerRound;
    const server = await bench.startBanana(APP, { workers: WORKERS });
    const side = await sideOf('ours', server);
    const load = { request: jsonRequest({}), connections: 100 };
    await measureOnce(bench.generator, side, load, secondsPerRound); // warm-up
    const ours: Round[] = [];
    const alone: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      ours.push(await measureOnce(bench.generator, side, load, secondsPerRound));
      alone.push(await loopsAlone(secondsPerRound * 1000));
    }
    bench.note(cpuNote('4 workers x 10 ms sleep', [side], [ours]));
    return [
      {
        name: '4 workers x 10 ms sleep, c=100, of the loops alone',
        ours: rateText(ours, 1),
        baseline: `${median(alone).toFixed(1)} calls/s`,
        value: median(ours.map(({ perSecond }, i) => (100 * perSecond) / (alone[i] as number))),
        goal: { must: 98, stretch: 99.5, better: 'higher', unit: '%' },
      },
    ];
  },
};

/** Calls per second of as many bare loops as there are workers, each in its own process. */
async function loopsAlone(durationMs: number): Promise<number> {
  const loops = Array.from({ length: WORKERS }, async () => {
    const args = [compiled('loop-main.js'), APP, String(durationMs)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    return Number(stdout);
  });
  return (await Promise.all(loops)).reduce((sum, rate) => sum + rate, 0);
}
