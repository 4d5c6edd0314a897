/** Metrics of the memory budgets, of the front's process, and of this machine's GPUs. */
import { readdirSync } from 'node:fs';
import type { BudgetStatus } from '../budget/memory-budget.js';
import type { GpuUsage } from '../machine/gpu-usage.js';
import { VERSION } from '../version.js';
import { ofServer, type HouseMetric, type MetricFacts } from './house-metric.js';
import type { Measured } from './measured.js';

const STARTED_AT_S = Math.round(Date.now() / 1000 - process.uptime());

export const MACHINE_METRICS: readonly HouseMetric[] = [
  {
    name: 'banana_memory_budget_bytes',
    type: 'gauge',
    labels: ['pool'],
    help: 'Memory that workers may use, of the machine (memory) or of a GPU.',
    measure: ofBudgets(({ pools }) =>
      pools.map(({ name, budgetBytes }) => ({ labels: { pool: name }, value: budgetBytes })),
    ),
  },
  {
    name: 'banana_memory_budget_used_bytes',
    type: 'gauge',
    labels: ['pool'],
    help: 'Memory that workers and spare processes use of a budget.',
    measure: ofBudgets(({ pools }) =>
      pools.map(({ name, usedBytes }) => ({ labels: { pool: name }, value: usedBytes })),
    ),
  },
  {
    name: 'banana_start_memory_bytes',
    type: 'gauge',
    labels: ['model', 'version', 'pool'],
    help: "Memory that the start of a model's first worker was found to take.",
    measure: ofBudgets(({ startCosts }) =>
      startCosts.flatMap(({ model, pool, firstBytes }) => {
        const at = model.lastIndexOf('@');
        const labels = { model: model.slice(0, at), version: model.slice(at + 1), pool };
        return firstBytes === null ? [] : [{ labels, value: firstBytes }];
      }),
    ),
  },
  {
    name: 'banana_memory_evictions_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Processes that left to free memory: idle workers (memory), busy ones whose turn was over (turn), and spares.',
    measure: ofBudgets(({ sentAway }) =>
      Object.entries(sentAway).map(([reason, value]) => ({ labels: { reason }, value })),
    ),
  },
  {
    name: 'banana_info',
    type: 'gauge',
    labels: ['version', 'node'],
    help: 'Always 1; the labels are the versions of the server and of Node.',
    measure: () => [{ labels: { version: VERSION, node: process.version }, value: 1 }],
  },
  {
    name: 'banana_front_event_loop_delay_seconds',
    type: 'gauge',
    labels: ['statistic'],
    help: 'Delay of the event loop of the front over the last 10 seconds: p50, p99 and max.',
    measure: ({ sampler }) =>
      Object.entries(sampler.delaySeconds).map(([statistic, value]) => ({ labels: { statistic }, value })),
  },
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

/** Without a memory budget there are no samples. */
function ofBudgets(measure: (status: BudgetStatus) => readonly Measured[]) {
  return ({ memory }: MetricFacts): readonly Measured[] => (memory === null ? [] : measure(memory.status));
}

function openDescriptors(): number | null {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return null; // not Linux
  }
}

/** A gauge of each card, from the last run of nvidia-smi; unknown figures are left out. */
function ofGpus(name: string, help: string, valueOf: (gpu: GpuUsage) => number | null): HouseMetric {
  const measure = ({ sampler }: MetricFacts): Measured[] =>
    sampler.gpus.latest.flatMap((gpu) => {
      const value = valueOf(gpu);
      const { index, uuid, name } = gpu;
      return value === null ? [] : [{ labels: { gpu: index, uuid, name }, value }];
    });
  return { name, type: 'gauge', labels: ['gpu', 'uuid', 'name'], help, measure };
}
