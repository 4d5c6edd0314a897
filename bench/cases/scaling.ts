/** The scaling policy beside the rules of Knative and Ray Serve in the simulator of the tests: the table in docs/scaling.md. */
import { allComparisons, betterThan, HEADER, rowOf, SEED } from '../../test/supervisor/scaling/comparison.js';
import { printTable } from '../../test/helpers/doc-page.js';
import type { BenchCase } from '../case.js';
import type { Row } from '../report.js';

export const scaling: BenchCase = {
  name: 'scaling',
  run(bench) {
    const cells: string[][] = [];
    const known: boolean[] = [];
    const fresh: boolean[] = [];
    for (const comparison of allComparisons()) {
      const better = betterThan(comparison.ours, comparison);
      const betterThanFresh = betterThan(comparison.oursFresh, comparison);
      known.push(better.length === 0);
      fresh.push(betterThanFresh.length === 0);
      cells.push([...rowOf(comparison), better.join(', '), betterThanFresh.join(', ')]);
    }
    const header = [...HEADER, 'less of both', 'less of both than a fresh server'];
    bench.note(`seed ${SEED}:\n${printTable(header, cells)}`);
    return Promise.resolve([row('known model', known), row('fresh server', fresh)]);
  },
};

/** `undefeated`: for each case, whether no point of theirs has less of both. */
function row(name: string, undefeated: readonly boolean[]): Row {
  const count = undefeated.filter(Boolean).length;
  return {
    name: `scaling: ${name}`,
    ours: `${count} cases`,
    baseline: `of ${undefeated.length}`,
    value: (100 * count) / undefeated.length,
    goal: { must: 90, stretch: 100, better: 'higher', unit: '%' },
  };
}
