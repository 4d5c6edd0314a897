/**
 * Measures the cost of metrics per call: the same build runs with and without them, in turn under the same load, both without
 * the page at `/`, which counts calls too. The one without runs twice, so that the difference of two equal servers stands beside that of the two.
 */
import type { BenchCase } from '../case.js';
import { measureInTurn, type Round, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, cpuText, serverCpuUs, sideOf } from '../sides.js';
import { median } from '../statistics.js';
import { smallJsonRequest } from './requests.js';

export const metrics: BenchCase = {
  name: 'metrics',
  async run(bench) {
    const start = async (name: string, flags: readonly string[]): Promise<Side> =>
      sideOf(name, await bench.startBanana(source('bench/apps/small.mjs'), { flags }));
    const sides = [
      await start('without', ['--no-page']),
      await start('with', ['--no-page', '--metrics']),
      await start('without, again', ['--no-page']),
    ];
    const load = { request: smallJsonRequest(), connections: 32 };
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('metrics, c=32', sides, results));
    const [without, counting, again] = results as [Round[], Round[], Round[]];
    bench.note(
      `two servers without metrics differ by ${moreUs(again, without).toFixed(2)} us of CPU a call.`,
    );
    return [
      {
        name: '200 B JSON, c=32, with metrics and without: CPU of a call, more',
        ours: cpuText(counting),
        baseline: cpuText(without),
        value: moreUs(counting, without),
        goal: { must: 1, better: 'lower', unit: 'us' },
      },
    ];
  },
};

/** Within each round; the median of them. */
function moreUs(ours: readonly Round[], others: readonly Round[]): number {
  return median(ours.map((round, i) => serverCpuUs(round) - serverCpuUs(others[i] as Round)));
}
