/** Draws one load's worker-seconds and waits under each autoscaler: the picture in docs/scaling.md. */
import { compare, MAX_WORKERS, seconds, SEED, type Comparison, type Point } from './comparison.js';
import { scaledLoad } from './loads.js';

const TARGETS = [0.3, 0.7, 2];
const BAR = 16;

/** Spikes of 10 s each minute, with starts of 5 s, from zero. */
export function spikes(): Comparison {
  return compare(scaledLoad('spikes', SEED), { min: 0, max: MAX_WORKERS, startMs: 5000 }, TARGETS);
}

export function scalingPicture({ ours, knative, ray, fixed }: Comparison): string {
  const points = [ours, ...knative, ...ray, ...fixed];
  points.sort((a, b) => a.outcome.workerS - b.outcome.workerS);
  const most = Math.max(...points.map(({ outcome }) => outcome.workerS));
  const row = ({ name, outcome: { workerS, p99WaitMs } }: Point): string => {
    const bar = '#'.repeat(Math.round((BAR * workerS) / most));
    const wait = seconds(p99WaitMs).padStart(8);
    return `${name === ours.name ? '>' : ' '} ${name.padEnd(14)}${wait}  ${workerS.toFixed(0).padStart(6)} ${bar}\n`;
  };
  return `  ${' '.repeat(14)}p99 wait  worker-seconds\n${points.map(row).join('')}`;
}
