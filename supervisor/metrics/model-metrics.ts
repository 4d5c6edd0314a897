/** Metrics of models: their calls, their queues, their workers. */
import { residentBytes } from '../machine/process-memory.js';
import { WORKER_PHASES } from '../models/describe-model.js';
import type { Model } from '../models/model.js';
import type { DeathCause, WorkerDeath } from '../processes/worker-death.js';
import type { Slot } from '../slots/slot.js';
import type { SlotState } from '../slots/slot-lifecycle.js';
import type { ModelCalls } from './call-counts.js';
import {
  MODEL_LABELS,
  labelsOf,
  ofModels,
  ofServer,
  perModel,
  type HouseMetric,
  type MetricFacts,
} from './house-metric.js';
import type { Labels, Measured } from './measured.js';

/** Counts restarts of workers per model and cause of the previous worker's death. */
export class Restarts {
  readonly #byModel = new WeakMap<Model, Map<DeathCause, number>>();

  of(model: Model): ReadonlyMap<DeathCause, number> {
    return this.#byModel.get(model) ?? new Map();
  }

  died(model: Model, { isKept, state }: Slot, { wanted, cause }: WorkerDeath): void {
    if (wanted || !isKept || state.name === 'latched') return; // it is not replaced
    const restarts = this.#byModel.get(model) ?? new Map<DeathCause, number>();
    restarts.set(cause, (restarts.get(cause) ?? 0) + 1);
    this.#byModel.set(model, restarts);
  }
}

/** Every model has a sample for each state, even if it is 0. */
const WORKER_STATES = [
  'starting',
  'idle',
  'busy',
  'standby',
  'frozen',
  'stopping',
  'backoff',
  'failing',
  'latched',
] as const;

type State = (typeof WORKER_STATES)[number];

export const MODEL_METRICS: readonly HouseMetric[] = [
  {
    name: 'banana_calls_total',
    type: 'counter',
    labels: [...MODEL_LABELS, 'dialect', 'code'],
    help: 'Finished calls, by ok or error code.',
    measure: measureEnds,
  },
  ofModels(
    'banana_call_queue_seconds',
    'Time from the arrival of a call until it began to run, or ended without running.',
    (model, { calls }) => calls.of(model).queueSeconds,
    'histogram',
  ),
  ofModels(
    'banana_call_run_seconds',
    'Run time of a call, as its worker measured it.',
    (model, { calls }) => calls.of(model).runSeconds,
    'histogram',
  ),
  ofModels(
    'banana_call_duration_seconds',
    'Time from the arrival of a call until its answer was sent.',
    (model, { calls }) => calls.of(model).totalSeconds,
    'histogram',
  ),
  ofModels(
    'banana_batch_size',
    'Calls that began together; a call that runs alone is a batch of one.',
    (model, { calls }) => calls.of(model).countBatches(),
    'histogram',
  ),
  ofModels('banana_queue_calls', 'Calls that wait for a worker.', ({ dispatcher }) => dispatcher.queued),
  ofModels(
    'banana_arriving_calls',
    'Calls whose bodies are arriving.',
    ({ dispatcher }) => dispatcher.arriving,
  ),
  ofModels(
    'banana_queue_bytes',
    'Bytes of calls that wait or arrive.',
    ({ dispatcher }) => dispatcher.waitingBytes,
  ),
  ofModels(
    'banana_in_flight_calls',
    'Calls that workers hold and a client waits for.',
    ({ dispatcher }) => dispatcher.inFlight,
  ),
  ofModels(
    'banana_load_calls',
    'Calls that wait or run, for autoscalers.',
    ({ dispatcher }) => dispatcher.queued + dispatcher.inFlight,
  ),
  ofModels(
    'banana_load_peak_calls',
    'The most of them at once in the last 60 s.',
    ({ sizing }) => sizing.demand.mostCalls,
  ),
  ofModels(
    'banana_predicted_wait_seconds',
    'Predicted wait of a call that arrives now; absent until enough calls have run.',
    ({ dispatcher }) => {
      const waitMs = dispatcher.predictWaitMs();
      return waitMs === null ? null : waitMs / 1000;
    },
  ),
  ofServer(
    'banana_unsent_clients',
    'Clients that have not read all of their answers.',
    ({ unsent }) => unsent.describe().clients,
  ),
  ofServer(
    'banana_unsent_bytes',
    'Bytes of answers that clients have not read.',
    ({ unsent }) => unsent.describe().bytes,
  ),
  {
    name: 'banana_workers',
    type: 'gauge',
    labels: [...MODEL_LABELS, 'state'],
    help: `Worker slots by state: ${WORKER_STATES.join(', ')}.`,
    measure: perModel(countStates),
  },
  ofModels('banana_wanted_workers', 'Workers that are wanted now.', ({ crew }) => crew.wanted),
  {
    name: 'banana_scaling_changes_total',
    type: 'counter',
    labels: [...MODEL_LABELS, 'change', 'rule'],
    help: 'Workers of models that scale themselves, started or retired by a rule.',
    measure: perModel((model) =>
      (model.sizing.rules === null ? [] : model.sizing.changes.counts()).map(({ change, rule, count }) => ({
        labels: labelsOf(model, { change, rule }),
        value: count,
      })),
    ),
  },
  {
    name: 'banana_worker_restarts_total',
    type: 'counter',
    labels: [...MODEL_LABELS, 'cause'],
    help: 'Workers started because the previous one had died, by its cause of death.',
    measure: perModel((model, { restarts }) =>
      Array.from(restarts.of(model), ([cause, value]) => ({
        labels: labelsOf(model, { cause: cause.replaceAll(' ', '_') }),
        value,
      })),
    ),
  },
  {
    name: 'banana_worker_resident_memory_bytes',
    type: 'gauge',
    labels: [...MODEL_LABELS, 'worker'],
    help: 'Resident memory of the processes of a worker, by the number of the worker.',
    measure: perModel((model) =>
      model.crew.all.map((slot) => ({
        labels: labelsOf(model, { worker: String(slot.index) }),
        value: slot.workers.reduce((sum, { pid }) => sum + (residentBytes(pid) ?? 0), 0),
      })),
    ),
  },
];

/** Labels of calls without an existing model: an empty label counts as absent in Prometheus. */
const NO_MODEL: Labels = { model: '', version: '' };

function measureEnds({ models, calls }: MetricFacts): Measured[] {
  const ends = models.describe().flatMap(({ model }) => endsOf(calls.of(model), labelsOf(model)));
  return [...ends, ...endsOf(calls.ofNone, NO_MODEL)];
}

function endsOf({ ends }: ModelCalls, labels: Labels): Measured[] {
  return [...ends].flatMap(([dialect, codes]) =>
    Array.from(codes, ([code, value]) => ({ labels: { ...labels, dialect, code }, value })),
  );
}

function countStates(model: Model): Measured[] {
  const { all, standbys } = model.crew;
  const states = all.map((slot) => {
    const state = stateOf(slot);
    return state === 'idle' && standbys.includes(slot) ? 'standby' : state;
  });
  return WORKER_STATES.map((state) => ({
    labels: labelsOf(model, { state }),
    value: states.filter((one) => one === state).length,
  }));
}

function stateOf({ worker, state, failure }: Slot): State {
  if (failure !== null && state.name !== 'latched') return 'failing'; // also while it starts once more
  if (worker === null) return WITHOUT_WORKER[state.name];
  const phase = WORKER_PHASES[worker.state];
  if (phase !== 'ready') return phase;
  if (worker.isFrozen) return 'frozen';
  return worker.load > 0 ? 'busy' : 'idle';
}

const WITHOUT_WORKER: Readonly<Record<SlotState['name'], State>> = {
  waiting: 'starting',
  live: 'starting',
  renewing: 'starting',
  replacing: 'starting',
  backoff: 'backoff',
  latched: 'latched',
  closing: 'stopping',
  closed: 'stopping',
};
