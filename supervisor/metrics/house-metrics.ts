/**
 * The metrics of the server: house-metrics.json has their descriptions, as docs/metrics.md prints them, and this file the
 * sources of their values.
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
import type { CallCounts, ModelCalls, Buckets } from './call-counts.js';
import descriptions from './house-metrics.json' with { type: 'json' };
import type { Family, Measured } from './prometheus.js';
import type { Sampler } from './sampler.js';

/** Sources of values during a scrape. */
export interface MetricFacts {
  readonly models: Pick<Models, 'describe'>;
  /** Null if no answer is written over HTTP. */
  readonly unsent: Pick<UnsentAnswers, 'describe'> | null;
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

/** A value, and those of the metric's labels, in the order of the description. */
type Row = readonly [labels: readonly string[], value: number | Buckets];

/** Rows, or the only value of a metric without labels; null while it is unknown. */
type Values = readonly Row[] | number | Buckets | null;

type Source = (facts: MetricFacts) => Values;

const STARTED_AT_S = Math.round(Date.now() / 1000 - process.uptime());

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

const SOURCES: Readonly<Record<keyof typeof descriptions, Source>> = {
  banana_calls_total: ({ models, calls }) => [
    ...models
      .describe()
      .flatMap(({ model: { spec }, model }) => endsOf(calls.of(model), spec.name, spec.version)),
    ...endsOf(calls.ofNone, '', ''), // an empty label counts as absent in Prometheus
  ],
  banana_call_queue_seconds: perModel((model, { calls }) => calls.of(model).queueSeconds),
  banana_call_run_seconds: perModel((model, { calls }) => calls.of(model).runSeconds),
  banana_call_duration_seconds: perModel((model, { calls }) => calls.of(model).totalSeconds),
  banana_batch_size: perModel((model, { calls }) => calls.of(model).countBatches()),
  banana_queue_calls: perModel(({ dispatcher }) => dispatcher.queued),
  banana_arriving_calls: perModel(({ dispatcher }) => dispatcher.arriving),
  banana_queue_bytes: perModel(({ dispatcher }) => dispatcher.waitingBytes),
  banana_in_flight_calls: perModel(({ dispatcher }) => dispatcher.inFlight),
  banana_load_calls: perModel(({ dispatcher }) => dispatcher.queued + dispatcher.inFlight),
  banana_load_peak_calls: perModel(({ sizing }) => sizing.demand.mostCalls),
  banana_predicted_wait_seconds: perModel(({ dispatcher }) => {
    const waitMs = dispatcher.predictWaitMs();
    return waitMs === null ? null : waitMs / 1000;
  }),
  banana_unsent_clients: ({ unsent }) => unsent && unsent.describe().clients,
  banana_unsent_bytes: ({ unsent }) => unsent && unsent.describe().bytes,
  banana_workers: perModel(({ crew }) => {
    const states = crew.all.map((slot) => stateOf(slot, crew.standbys.includes(slot)));
    return WORKER_STATES.map((state) => [[state], states.filter((one) => one === state).length]);
  }),
  banana_wanted_workers: perModel(({ crew }) => crew.wanted),
  banana_scaling_changes_total: perModel(({ sizing: { rules, changeCounts } }) =>
    rules === null ? [] : Array.from(changeCounts, ([key, count]) => [key.split(' '), count]),
  ),
  banana_worker_restarts_total: perModel((model, { restarts }) =>
    Array.from(restarts.get(model) ?? [], ([cause, count]) => [[cause.replaceAll(' ', '_')], count]),
  ),
  banana_worker_resident_memory_bytes: perModel(({ crew }) =>
    crew.all.map(({ index, workers }) => {
      return [[String(index)], workers.reduce((sum, { pid }) => sum + (residentBytes(pid) ?? 0), 0)];
    }),
  ),
  banana_memory_budget_bytes: inBudget(({ pools }) =>
    pools.map(({ name, budgetBytes }) => [[name], budgetBytes]),
  ),
  banana_memory_budget_used_bytes: inBudget(({ pools }) =>
    pools.map(({ name, usedBytes }) => [[name], usedBytes]),
  ),
  banana_start_memory_bytes: inBudget(({ startCosts }) =>
    startCosts.flatMap(({ model, pool, firstBytes }): Row[] => {
      const at = model.lastIndexOf('@');
      return firstBytes === null ? [] : [[[model.slice(0, at), model.slice(at + 1), pool], firstBytes]];
    }),
  ),
  banana_memory_evictions_total: inBudget(({ sentAway }) => rowsOf(sentAway)),
  banana_info: () => [[[VERSION, process.version], 1]],
  banana_front_event_loop_delay_seconds: ({ sampler }) => rowsOf(sampler.delaySeconds),
  banana_front_cpu_seconds_total: () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
  banana_front_resident_memory_bytes: () => process.memoryUsage.rss(),
  banana_front_heap_bytes: () => process.memoryUsage().heapUsed,
  banana_front_open_fds: openDescriptors,
  banana_front_start_time_seconds: () => STARTED_AT_S,
  banana_gpu_memory_used_bytes: perGpu(({ usedBytes }) => usedBytes),
  banana_gpu_memory_total_bytes: perGpu(({ totalBytes }) => totalBytes),
  banana_gpu_utilization_ratio: perGpu(({ utilization }) => utilization),
};

export const HOUSE_METRICS: readonly HouseMetric[] = Object.entries(SOURCES).map(([name, source]) => {
  const { type, labels, help } = descriptions[name as keyof typeof descriptions];
  const measure = (facts: MetricFacts): Measured[] =>
    asRows(source(facts)).map(([values, value]) => {
      return { labels: Object.fromEntries(labels.map((label, i) => [label, values[i] as string])), value };
    });
  return { name, type: type as Family['type'], labels, help, measure };
});

function asRows(values: Values): readonly Row[] {
  if (values === null) return [];
  return typeof values === 'number' || 'bounds' in values ? [[[], values]] : values;
}

/** The values for each model, including those that are being unregistered; its name and version come before other labels. */
function perModel(valuesOf: (model: Model, facts: MetricFacts) => Values): Source {
  return (facts) =>
    facts.models.describe().flatMap(({ model }) => {
      const { name, version } = model.spec;
      return asRows(valuesOf(model, facts)).map(([own, value]): Row => [[name, version, ...own], value]);
    });
}

/** Without a memory budget there are no samples. */
function inBudget(rowsIn: (status: BudgetStatus) => readonly Row[]): Source {
  return ({ memory }) => memory && rowsIn(memory.status);
}

/** A value for each card, from the last run of nvidia-smi; unknown figures are left out. */
function perGpu(valueOf: (gpu: GpuUsage) => number | null): Source {
  return ({ sampler }) =>
    sampler.gpus.latest.flatMap((gpu): Row[] => {
      const value = valueOf(gpu);
      return value === null ? [] : [[[gpu.index, gpu.uuid, gpu.name], value]];
    });
}

/** A row for each member, whose name is the only label. */
function rowsOf(values: Readonly<Record<string, number>>): Row[] {
  return Object.entries(values).map(([label, value]) => [[label], value]);
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
