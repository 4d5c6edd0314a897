/**
 * The long form of the chaos test: 10,000 jobs on three servers and one Redis while all of them are killed and frozen. With
 * `everysec` Redis may lose what it has said: how much is reported. Runs some minutes, only if it is named.
 */
import type { BenchCase } from '../case.js';
import type { Goal, Row } from '../report.js';
import { jobChaos, type ChaosResult } from '../../test/helpers/job-chaos.js';

const JOBS = 10_000;
const HARM = { worker: 40, front: 15, redis: 15, freeze: 8, receiver: 15 };

const NONE: Goal = { must: 0, better: 'lower', unit: '' };

export const jobChaosCase: BenchCase = {
  name: 'job-chaos',
  async run(bench) {
    const rows: Row[] = [];
    for (const appendfsync of ['always', 'everysec']) {
      const seed = Math.floor(Math.random() * 2 ** 31);
      console.error(`  appendfsync ${appendfsync}, seed ${seed}`);
      const result = await jobChaos({ jobs: JOBS, fronts: 3, seed, appendfsync, harm: HARM });
      bench.note(`appendfsync ${appendfsync}, seed ${seed}: ${textOf(result)}`);
      rows.push({
        name: `${JOBS} jobs under kills and freezes, ${appendfsync}: broken promises`,
        ours: String(result.breaches.length),
        baseline: '',
        value: result.breaches.length,
        goal: appendfsync === 'always' ? NONE : null,
      });
    }
    return rows;
  },
};

function textOf({ states, repeated, webhooks, breaches }: ChaosResult): string {
  const counts = Object.entries(states).map(([state, count]) => `${count} ${state}`);
  const first = breaches.slice(0, 5).map((text) => `; ${text}`);
  return `${counts.join(', ')}; ${repeated} began again; ${webhooks.came} webhooks came, ${webhooks.again} of them again, ${webhooks.givenUp} given up while the receiver was away${first.join('')}`;
}
