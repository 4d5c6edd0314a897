/** 5,000 calls of functions, while 200 of their workers and 50 of their programs are killed. */
import type { BenchCase } from '../case.js';
import { functionChaos } from '../../test/helpers/function-chaos.js';

const HOSTS = 50;
const CALLS_PER_HOST = 100;
const KILLS_PER_HOST = 4;

export const functionChaosCase: BenchCase = {
  name: 'function-chaos',
  async run(bench) {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.error(`  seed ${seed}`);
    const chaos = { hosts: HOSTS, callsPerHost: CALLS_PER_HOST, killsPerHost: KILLS_PER_HOST, seed };
    const { breaches, ends, kills, longestOrphanMs } = await functionChaos(chaos);
    const counts = Object.entries(ends).map(([what, count]) => `${what} ${count}`);
    const first = breaches.slice(0, 5).map((text) => `; ${text}`);
    bench.note(
      `${HOSTS * CALLS_PER_HOST} calls, seed ${seed}, ${kills} workers and ${HOSTS} programs killed: ${counts.join(', ')}; workers were gone ${longestOrphanMs.toFixed(0)} ms after their program at most${first.join('')}.`,
    );
    return [
      {
        name: `${HOSTS * CALLS_PER_HOST} calls of functions while workers and programs are killed: broken promises`,
        ours: String(breaches.length),
        baseline: '',
        value: breaches.length,
        goal: { must: 0, better: 'lower', unit: '' },
      },
    ];
  },
};
