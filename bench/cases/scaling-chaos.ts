/** 10,000 calls to a model that scales itself, while its workers are killed and frozen, its app saved and its bounds changed. */
import type { BenchCase } from '../case.js';
import { scalingChaos } from '../../test/helpers/scaling-chaos.js';

const CALLS = 10_000;

export const scalingChaosCase: BenchCase = {
  name: 'scaling-chaos',
  async run(bench) {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.error(`  seed ${seed}`);
    const { breaches, answers, harm, processes } = await scalingChaos({ calls: CALLS, seed });
    const first = breaches.slice(0, 5).map((text) => `; ${text}`);
    bench.note(
      `${CALLS} calls, seed ${seed}: answers ${countsOf(answers)} (503 is sent again), by ${processes} processes; ${countsOf(harm)}${first.join('')}.`,
    );
    return [
      {
        name: `${CALLS} calls while workers come, go, die and freeze: broken promises`,
        ours: String(breaches.length),
        baseline: '',
        value: breaches.length,
        goal: { must: 0, better: 'lower', unit: '' },
      },
    ];
  },
};

function countsOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${what} ${count}`)
    .join(', ');
}
