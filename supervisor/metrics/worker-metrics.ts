/** Metrics of workers: states, restarts, memory. */
import { residentBytes } from '../machine/process-memory.js';
import type { Model } from '../models/model.js';
import type { WorkerState } from '../processes/worker-lifecycle.js';
import type { Slot } from '../slots/slot.js';
import type { SlotState } from '../slots/slot-lifecycle.js';
import { MODEL_LABELS, labelsOf, onePerModel, perModel, type HouseMetric } from './house-metric.js';
import type { Measured } from './measured.js';

/** Every model has a sample for each state, even if it is 0. */
export const WORKER_STATES = [
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

export const WORKER_METRICS: readonly HouseMetric[] = [
  {
    name: 'banana_workers',
    type: 'gauge',
    labels: [...MODEL_LABELS, 'state'],
    help: `Worker slots by state: ${WORKER_STATES.join(', ')}.`,
    measure: perModel(countStates),
  },
  {
    name: 'banana_wanted_workers',
    type: 'gauge',
    labels: MODEL_LABELS,
    help: 'Workers that are wanted now.',
    measure: onePerModel(({ wantedWorkers }) => wantedWorkers),
  },
  {
    name: 'banana_scaling_changes_total',
    type: 'counter',
    labels: [...MODEL_LABELS, 'change', 'rule'],
    help: 'Workers of models that scale themselves, started or retired by a rule.',
    measure: perModel((model) =>
      (model.scaling?.changes.counts() ?? []).map(({ change, rule, count }) => ({
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
    measure: perModel((model, { workers }) =>
      Array.from(workers.restartsOf(model), ([cause, value]) => ({
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
      model.slots.map((slot) => ({
        labels: labelsOf(model, { worker: String(slot.index) }),
        value: slot.workers.reduce((sum, { pid }) => sum + (residentBytes(pid) ?? 0), 0),
      })),
    ),
  },
];

function countStates(model: Model): Measured[] {
  const { standbys } = model;
  const states = model.slots.map((slot) => {
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
  if (worker.state !== 'ready') return WITH_WORKER[worker.state];
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

const WITH_WORKER: Readonly<Record<Exclude<WorkerState, 'ready'>, State>> = {
  spawning: 'starting',
  loading: 'starting',
  initializing: 'starting',
  warming: 'starting',
  finishing: 'stopping',
  stopping: 'stopping',
  killing: 'stopping',
  gone: 'stopping',
};
