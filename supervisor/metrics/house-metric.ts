/** A metric of the server: its description, as in docs/metrics.md, and the source of its values. */
import type { MemoryBudget } from '../budget/memory-budget.js';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { Model } from '../models/model.js';
import type { Models } from '../models/models.js';
import type { DeathCause } from '../processes/worker-death.js';
import type { CallCounts } from './call-counts.js';
import type { Family, Labels, Measured } from './measured.js';
import type { Sampler } from './sampler.js';

/** Sources of values during a scrape. */
export interface MetricFacts {
  readonly models: Models;
  readonly unsent: UnsentAnswers;
  /** Null without a memory budget. */
  readonly memory: Pick<MemoryBudget, 'status'> | null;
  readonly calls: CallCounts;
  /** Number of restarts of workers of a model, by the cause of the previous worker's death. */
  readonly restarts: { of(model: Model): ReadonlyMap<DeathCause, number> };
  readonly sampler: Sampler;
}

export interface HouseMetric extends Omit<Family, 'measured'> {
  readonly labels: readonly string[];
  measure(facts: MetricFacts): Iterable<Measured>;
}

/** Labels of a model, with those of `more`. */
export function labelsOf({ spec: { name, version } }: Model, more: Labels = {}): Labels {
  return { model: name, version, ...more };
}

export const MODEL_LABELS: readonly string[] = ['model', 'version'];

/** Runs `measure` for each model, including those that are being unregistered. */
export function perModel(measure: (model: Model, facts: MetricFacts) => readonly Measured[]) {
  return (facts: MetricFacts): Measured[] =>
    facts.models.describe().flatMap(({ model }) => measure(model, facts));
}

/** A metric with one value for each model; null if it is unknown. */
export function ofModels(
  name: string,
  help: string,
  valueOf: (model: Model, facts: MetricFacts) => Measured['value'] | null,
  type: Family['type'] = 'gauge',
): HouseMetric {
  const measure = perModel((model, facts) => {
    const value = valueOf(model, facts);
    return value === null ? [] : [{ labels: labelsOf(model), value }];
  });
  return { name, type, labels: MODEL_LABELS, help, measure };
}

/** A metric with one value for the whole server; null while it is unknown. */
export function ofServer(
  name: string,
  help: string,
  valueOf: (facts: MetricFacts) => number | null,
  type: Family['type'] = 'gauge',
): HouseMetric {
  const measure = (facts: MetricFacts): Measured[] => {
    const value = valueOf(facts);
    return value === null ? [] : [{ labels: {}, value }];
  };
  return { name, type, labels: [], help, measure };
}
