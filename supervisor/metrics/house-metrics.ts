/**
 * The metrics of the server: their descriptions, as in docs/metrics.md, and the sources of their values. First those of
 * models (their calls, queues and workers), then those of memory budgets, of the front's process, and of this machine's GPUs.
 */
import { readdirSync } from 'node:fs';
import type { BudgetStatus, MemoryBudget } from '../budget/memory-budget.js';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { GpuUsage } from '../machine/nvidia-smi.js';
import { residentBytes } from '../machine/processes.js';
import { WORKER_PHASES } from '../models/describe-model.js';
import type { Model } from '../models/model.js';
import type { Models } from '../models/models.js';
import type { DeathCause } from '../processes/worker-death.js';
import type { SlotState } from '../slots/slot-lifecycle.js';
import type { Slot } from '../slots/slot.js';
import { VERSION } from '../version.js';
import type { CallCounts, ModelCalls } from './call-counts.js';
import type { Family, Measured } from './prometheus.js';
import type { Sampler } from './sampler.js';

/** Sources of values during a scrape. */
export interface MetricFacts {
  readonly models: Models;
  readonly unsent: UnsentAnswers;
  /** Null without a memory budget. */
  readonly memory: Pick<MemoryBudget, 'status'> | null;
  readonly calls: CallCounts;
  /** Number of restarts of workers of a model, by the cause of the previous worker's death. */
  readonly restarts: WeakMap<Model, Map<DeathCause, number>>;
  readonly sampler: Sampler;
}

export interface HouseMetric extends Omit<Family, 'measured'> {
  readonly labels: readonly string[];
  measure(facts: MetricFacts): Iterable<Measured>;
}

/** A value, and those of its labels. */
type Row = readonly [labels: readonly string[], value: Measured['value']];

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

const STARTED_AT_S = Math.round(Date.now() / 1000 - process.uptime());

export const HOUSE_METRICS: readonly HouseMetric[] = [
  labelled(
    'banana_calls_total',
    'counter',
    ['model', 'version', 'dialect', 'code'],
    'Finished calls, by ok or error code.',
    ({ models, calls }) => [
      ...models
        .describe()
        .flatMap(({ model }) => endsOf(calls.of(model), model.spec.name, model.spec.version)),
      ...endsOf(calls.ofNone, '', ''), // an empty label counts as absent in Prometheus
    ],
  ),
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
  perModel(
    'banana_workers',
    'gauge',
    ['state'],
    `Worker slots by state: ${WORKER_STATES.join(', ')}.`,
    ({ crew }) => {
      const states = crew.all.map((slot) => stateOf(slot, crew.standbys.includes(slot)));
      return WORKER_STATES.map((state) => [[state], states.filter((one) => one === state).length]);
    },
  ),
  ofModels('banana_wanted_workers', 'Workers that are wanted now.', ({ crew }) => crew.wanted),
  perModel(
    'banana_scaling_changes_total',
    'counter',
    ['change', 'rule'],
    'Workers of models that scale themselves, started or retired by a rule.',
    ({ sizing: { rules, changes } }) =>
      rules === null ? [] : changes.counts().map(({ change, rule, count }) => [[change, rule], count]),
  ),
  perModel(
    'banana_worker_restarts_total',
    'counter',
    ['cause'],
    'Workers started because the previous one had died, by its cause of death.',
    (model, { restarts }) =>
      Array.from(restarts.get(model) ?? [], ([cause, count]) => [[cause.replaceAll(' ', '_')], count]),
  ),
  perModel(
    'banana_worker_resident_memory_bytes',
    'gauge',
    ['worker'],
    'Resident memory of the processes of a worker, by the number of the worker.',
    ({ crew }) =>
      crew.all.map(({ index, workers }) => {
        return [[String(index)], workers.reduce((sum, { pid }) => sum + (residentBytes(pid) ?? 0), 0)];
      }),
  ),
  ofBudgets(
    'banana_memory_budget_bytes',
    'gauge',
    ['pool'],
    'Memory that workers may use, of the machine (memory) or of a GPU.',
    ({ pools }) => pools.map(({ name, budgetBytes }) => [[name], budgetBytes]),
  ),
  ofBudgets(
    'banana_memory_budget_used_bytes',
    'gauge',
    ['pool'],
    'Memory that workers and spare processes use of a budget.',
    ({ pools }) => pools.map(({ name, usedBytes }) => [[name], usedBytes]),
  ),
  ofBudgets(
    'banana_start_memory_bytes',
    'gauge',
    ['model', 'version', 'pool'],
    "Memory that the start of a model's first worker was found to take.",
    ({ startCosts }) =>
      startCosts.flatMap(({ model, pool, firstBytes }): Row[] => {
        const at = model.lastIndexOf('@');
        return firstBytes === null ? [] : [[[model.slice(0, at), model.slice(at + 1), pool], firstBytes]];
      }),
  ),
  ofBudgets(
    'banana_memory_evictions_total',
    'counter',
    ['reason'],
    'Processes that left to free memory: idle workers (memory), busy ones whose turn was over (turn), and spares.',
    ({ sentAway }) => Object.entries(sentAway).map(([reason, count]) => [[reason], count]),
  ),
  labelled(
    'banana_info',
    'gauge',
    ['version', 'node'],
    'Always 1; the labels are the versions of the server and of Node.',
    () => [[[VERSION, process.version], 1]],
  ),
  labelled(
    'banana_front_event_loop_delay_seconds',
    'gauge',
    ['statistic'],
    'Delay of the event loop of the front over the last 10 seconds: p50, p99 and max.',
    ({ sampler }) => Object.entries(sampler.delaySeconds).map(([statistic, delay]) => [[statistic], delay]),
  ),
  ofServer(
    'banana_front_cpu_seconds_total',
    'CPU time of the front.',
    () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
    'counter',
  ),
  ofServer('banana_front_resident_memory_bytes', 'Memory of the front.', () => process.memoryUsage.rss()),
  ofServer(
    'banana_front_heap_bytes',
    "Used memory of the front's JavaScript heap.",
    () => process.memoryUsage().heapUsed,
  ),
  ofServer(
    'banana_front_open_fds',
    'Open file descriptors of the front; absent on systems without /proc.',
    openDescriptors,
  ),
  ofServer(
    'banana_front_start_time_seconds',
    'Start time of the front, in seconds since the epoch.',
    () => STARTED_AT_S,
  ),
  ofGpus('banana_gpu_memory_used_bytes', 'GPU memory in use by any process.', ({ usedBytes }) => usedBytes),
  ofGpus('banana_gpu_memory_total_bytes', 'Memory of a GPU.', ({ totalBytes }) => totalBytes),
  ofGpus(
    'banana_gpu_utilization_ratio',
    'Share of the time in which a GPU was busy, from 0 to 1.',
    ({ utilization }) => utilization,
  ),
];

function labelled(
  name: string,
  type: Family['type'],
  labels: readonly string[],
  help: string,
  rowsOf: (facts: MetricFacts) => readonly Row[],
): HouseMetric {
  const measure = (facts: MetricFacts): Measured[] =>
    rowsOf(facts).map(([values, value]) => {
      return { labels: Object.fromEntries(labels.map((label, i) => [label, values[i] as string])), value };
    });
  return { name, type, labels, help, measure };
}

/** A metric with values for each model, including those that are being unregistered, and further `labels`. */
function perModel(
  name: string,
  type: Family['type'],
  labels: readonly string[],
  help: string,
  rowsOf: (model: Model, facts: MetricFacts) => readonly Row[],
): HouseMetric {
  return labelled(name, type, ['model', 'version', ...labels], help, (facts) =>
    facts.models.describe().flatMap(({ model }) => {
      const { spec } = model;
      return rowsOf(model, facts).map(([own, value]): Row => [[spec.name, spec.version, ...own], value]);
    }),
  );
}

/** A metric with one value for each model; null if it is unknown. */
function ofModels(
  name: string,
  help: string,
  valueOf: (model: Model, facts: MetricFacts) => Measured['value'] | null,
  type: Family['type'] = 'gauge',
): HouseMetric {
  return perModel(name, type, [], help, (...of) => oneRow(valueOf(...of)));
}

/** A metric with one value for the whole server; null while it is unknown. */
function ofServer(
  name: string,
  help: string,
  valueOf: (facts: MetricFacts) => number | null,
  type: Family['type'] = 'gauge',
): HouseMetric {
  return labelled(name, type, [], help, (facts) => oneRow(valueOf(facts)));
}

function oneRow(value: Measured['value'] | null): Row[] {
  return value === null ? [] : [[[], value]];
}

/** Without a memory budget there are no samples. */
function ofBudgets(
  name: string,
  type: Family['type'],
  labels: readonly string[],
  help: string,
  rowsOf: (status: BudgetStatus) => readonly Row[],
): HouseMetric {
  return labelled(name, type, labels, help, ({ memory }) => (memory === null ? [] : rowsOf(memory.status)));
}

/** A gauge of each card, from the last run of nvidia-smi; unknown figures are left out. */
function ofGpus(name: string, help: string, valueOf: (gpu: GpuUsage) => number | null): HouseMetric {
  return labelled(name, 'gauge', ['gpu', 'uuid', 'name'], help, ({ sampler }) =>
    sampler.gpus.latest.flatMap((gpu): Row[] => {
      const value = valueOf(gpu);
      return value === null ? [] : [[[gpu.index, gpu.uuid, gpu.name], value]];
    }),
  );
}

function endsOf({ ends }: ModelCalls, name: string, version: string): Row[] {
  return [...ends].flatMap(([dialect, codes]) =>
    Array.from(codes, ([code, count]): Row => [[name, version, dialect, code], count]),
  );
}

function stateOf({ worker, state, failure }: Slot, isStandby: boolean): (typeof WORKER_STATES)[number] {
  if (failure !== null && state.name !== 'latched') return 'failing'; // also while it starts once more
  if (worker === null) return WITHOUT_WORKER[state.name];
  const phase = WORKER_PHASES[worker.state];
  if (phase !== 'ready') return phase;
  if (worker.isFrozen) return 'frozen';
  if (worker.load > 0) return 'busy';
  return isStandby ? 'standby' : 'idle';
}

const WITHOUT_WORKER = {
  waiting: 'starting',
  live: 'starting',
  renewing: 'starting',
  replacing: 'starting',
  backoff: 'backoff',
  latched: 'latched',
  closing: 'stopping',
  closed: 'stopping',
} as const satisfies Record<SlotState['name'], string>;

function openDescriptors(): number | null {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return null; // not Linux
  }
}
