/** Compares autoscalers by what they cost, worker-seconds, and what callers get, the p99 of the wait. */
import { fixed, knative, ours, ray } from './autoscalers.js';
import { LOADS, scaledLoad } from './loads.js';
import {
  simulateScaling,
  type Autoscaler,
  type Bounds,
  type ScaledLoad,
  type ScaledOutcome,
} from './simulator.js';

export const SEED = 1;
export const MAX_WORKERS = 8;
export const STARTS_MS: readonly number[] = [300, 5000, 60_000];

/** Ongoing calls for each worker that the others aim at; of batches so many times their size. */
const TARGETS = [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9, 1, 1.5, 2];

export interface Point {
  readonly name: string;
  readonly outcome: ScaledOutcome;
}

export interface Comparison {
  readonly load: string;
  readonly bounds: Bounds;
  readonly ours: Point;
  /** Ours, of a server that has not run the model before. */
  readonly oursFresh: Point;
  readonly knative: readonly Point[];
  readonly ray: readonly Point[];
  readonly fixed: readonly Point[];
}

export function compare(load: ScaledLoad, bounds: Bounds, targets: readonly number[] = TARGETS): Comparison {
  const run = (autoscaler: Autoscaler): Point => ({
    name: autoscaler.name,
    outcome: simulateScaling(load, bounds, autoscaler),
  });
  const scaled = targets.map((target) => target * load.batchSize);
  return {
    load: load.name,
    bounds,
    ours: run(ours(bounds, load, false)),
    oursFresh: run(ours(bounds, load, true)),
    knative: scaled.map((target) => run(knative(target))),
    ray: scaled.map((target) => run(ray(target))),
    fixed: [2, 3, 4, 5, 6, 7, MAX_WORKERS].map((workers) => run(fixed(workers))),
  };
}

/** The points of Knative and Ray Serve that have less than `own` of both. */
export function betterThan({ outcome: own }: Point, { knative: first, ray: second }: Comparison): string[] {
  const better = [...first, ...second].filter(
    ({ outcome }) => outcome.workerS < own.workerS && outcome.p99WaitMs < own.p99WaitMs,
  );
  return better.map(({ name }) => name);
}

/** All cases, one after another: 6 loads, starts of 0.3, 5 and 60 s, at least 0 workers and 1. It takes minutes. */
export function* allComparisons(): Generator<Comparison> {
  for (const name of LOADS) {
    const load = scaledLoad(name, SEED);
    for (const startMs of STARTS_MS) {
      for (const min of [0, 1]) yield compare(load, { min, max: MAX_WORKERS, startMs });
    }
  }
}

/** One row of the table in docs/scaling.md: ours, and the others' extra worker-seconds for a p99 no longer than ours. */
export function rowOf(comparison: Comparison): string[] {
  const { load, bounds, ours: own } = comparison;
  const { workerS, p99WaitMs } = own.outcome;
  const extra = (points: readonly Point[]): string => {
    const waitNoLonger = points.filter(({ outcome }) => outcome.p99WaitMs <= p99WaitMs);
    if (waitNoLonger.length === 0) return '–';
    const more = Math.min(...waitNoLonger.map(({ outcome }) => outcome.workerS)) / workerS - 1;
    return `${more < 0 ? '−' : '+'}${Math.abs(100 * more).toFixed(0)}%`;
  };
  return [
    load,
    `${bounds.startMs / 1000} s`,
    String(bounds.min),
    workerS.toFixed(0),
    seconds(p99WaitMs),
    extra(comparison.knative),
    extra(comparison.ray),
    extra(comparison.fixed),
  ];
}

export const HEADER = ['load', 'start', 'min', 'worker-s', 'p99', 'Knative', 'Ray Serve', 'fixed'];

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`;
}
