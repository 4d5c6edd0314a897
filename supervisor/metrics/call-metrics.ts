/** What has become of calls. */
import type { ModelCalls } from './call-counts.js';
import { MODEL_LABELS, labelsOf, onePerModel, type HouseMetric, type MetricFacts } from './house-metric.js';
import type { Labels, Measured } from './measured.js';

/** How calls name no model that is there: an empty label is none to Prometheus. */
const NO_MODEL: Labels = { model: '', version: '' };

export const CALL_METRICS: readonly HouseMetric[] = [
  {
    name: 'banana_calls_total',
    type: 'counter',
    labels: [...MODEL_LABELS, 'dialect', 'code'],
    help: 'Calls that have come to their end, by ok or the code of their error.',
    measure: measureEnds,
  },
  {
    name: 'banana_call_queue_seconds',
    type: 'histogram',
    labels: MODEL_LABELS,
    help: 'Time from the arrival of a call until it began, or ended without that.',
    measure: onePerModel((model, { calls }) => calls.of(model).queueSeconds),
  },
  {
    name: 'banana_call_run_seconds',
    type: 'histogram',
    labels: MODEL_LABELS,
    help: 'Time that a call ran, as its worker measured it.',
    measure: onePerModel((model, { calls }) => calls.of(model).runSeconds),
  },
  {
    name: 'banana_call_duration_seconds',
    type: 'histogram',
    labels: MODEL_LABELS,
    help: 'Time from the arrival of a call until its answer was out.',
    measure: onePerModel((model, { calls }) => calls.of(model).totalSeconds),
  },
  {
    name: 'banana_batch_size',
    type: 'histogram',
    labels: MODEL_LABELS,
    help: 'Calls that began together; a call that runs alone is a batch of one.',
    measure: onePerModel((model, { calls }) => calls.of(model).batchSizes),
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
