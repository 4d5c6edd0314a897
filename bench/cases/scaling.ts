/** The scaling policy beside the rules of Knative and Ray Serve in the simulator of the tests: the table in docs/scaling.md. */
import {
  allComparisons,
  betterThanOurs,
  HEADER,
  rowOf,
  SEED,
} from '../../test/supervisor/scaling/comparison.js';
import { printTable } from '../../test/helpers/doc-page.js';
import type { Bench, BenchCase } from '../case.js';
import type { Row } from '../report.js';

export const scaling: BenchCase = {
  name: 'scaling',
  run: (bench) => Promise.resolve([false, true].map((isFresh) => compareAll(bench, isFresh))),
};

function compareAll(bench: Bench, isFresh: boolean): Row {
  const cells: string[][] = [];
  let undefeated = 0;
  for (const comparison of allComparisons(isFresh)) {
    const better = betterThanOurs(comparison);
    if (better.length === 0) undefeated += 1;
    cells.push([...rowOf(comparison), better.join(', ')]);
  }
  const server = isFresh ? 'a server that never ran the model' : 'a server that has run the model before';
  bench.note(`${server}, seed ${SEED}:\n${printTable([...HEADER, 'less of both'], cells)}`);
  return {
    name: `scaling: ${server}`,
    ours: `${undefeated} cases`,
    baseline: `${cells.length} cases`,
    value: (100 * undefeated) / cells.length,
    goal: { must: 90, stretch: 100, better: 'higher', unit: '%' },
  };
}
