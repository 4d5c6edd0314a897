/** Ten megabytes there and back: the price of carrying large bodies through a second process. */
import { checkSameAnswers } from '../answers.js';
import type { BenchCase } from '../case.js';
import { measureInTurn, medianOf, medianRatio, type Round } from '../rounds.js';
import { cpuNote, frontCpuRow, serverCpuUs, startSides } from '../sides.js';
import { BIG_BYTES, bigBytesRequest } from './requests.js';

export const echo: BenchCase = {
  name: 'echo',
  async run(bench) {
    const load = { request: bigBytesRequest(), connections: 2 };
    const sides = await startSides(bench, 'bench/apps/echo.mjs', ['koa-bytes']);
    await checkSameAnswers(sides, load.request);
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('10 MB echo, c=2', sides, results));
    const perGb = sides.map(
      ({ name }, i) => `${name} ${medianOf(results[i] ?? [], cpuSecondsPerGb).toFixed(2)} s`,
    );
    bench.note(`10 MB echo, server CPU per GB (10^9 bytes, each in and out once): ${perGb.join('; ')}.`);
    const [ours = [], koa = []] = results;
    return [
      frontCpuRow('10 MB bytes echo, c=2, vs Koa', [ours, koa], null),
      {
        name: '10 MB bytes echo, c=2',
        ours: rateInGb(ours),
        baseline: rateInGb(koa),
        value: medianRatio(ours, koa, ({ perSecond }) => perSecond),
        goal: { must: 0.5, stretch: 0.7, better: 'higher', unit: 'x' },
      },
    ];
  },
};

function rateInGb(rounds: readonly Round[]): string {
  return `${((medianOf(rounds, ({ perSecond }) => perSecond) * BIG_BYTES) / 1e9).toFixed(2)} GB/s`;
}

function cpuSecondsPerGb(round: Round): number {
  return serverCpuUs(round) / 1e6 / (BIG_BYTES / 1e9);
}
