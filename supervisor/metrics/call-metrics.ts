/** Counters and histograms of calls. */
import type { ModelCalls } from './call-counts.js';
import { MODEL_LABELS, labelsOf, onePerModel, type HouseMetric, type MetricFacts } from './house-metric.js';
import type { Labels, Measured } from './measured.js';

/** Labels of calls without an existing model: an empty label counts as absent in Prometheus. */
const NO_MODEL: Labels = { model: '', version: '' };

export const CALL_METRICS: readonly HouseMetric[] = [
  {
    name: 'banana_calls_total',
    type: 'counter',
    labels: [...MODEL_LABELS, 'dialect', 'code'],
    help: 'Finished calls, by ok or error code.',
    measure: measureEnds,
  },
  {
    name: 'banana_call_queue_seconds',
    type: 'histogram',
    labels: MODEL_LABELS,
    help: 'Time from the arrival of a call until it began to run, or ended without running.',
    measure: onePerModel((model, { calls }) => calls.of(model).queueSeconds),
  },
  {
    name: 'banana_call_run_seconds',
    type: 'histogram',
    labels: MODEL_LABELS,
    help: 'Run time of a call, as its worker measured it.',
    measure: onePerModel((model, { calls }) => calls.of(model).runSeconds),
  },
  {
    name: 'banana_call_duration_seconds',
    type: 'histogram',
    labels: MODEL_LABELS,
    help: 'Time from the arrival of a call until its answer was sent.',
    measure: onePerModel((model, { calls }) => calls.of(model).totalSeconds),
  },
  {
    name: 'banana_batch_size',
    type: 'histogram',
    labels: MODEL_LABELS,
    help: 'Calls that began together; a call that runs alone is a batch of one.',
    measure: onePerModel((model, { calls }) => calls.of(model).countBatches()),
  },
];

function measureEnds({ models, calls }: MetricFacts): Measured[] {
  const ofModels = models.describe().flatMap(({ model }) => endsOf(calls.of(model), labelsOf(model)));
  return [...ofModels, ...endsOf(calls.ofNone, NO_MODEL)];
}

function endsOf({ ends }: ModelCalls, labels: Labels): Measured[] {
  return [...ends].flatMap(([dialect, codes]) =>
    Array.from(codes, ([code, value]) => ({ labels: { ...labels, dialect, code }, value })),
  );
}
