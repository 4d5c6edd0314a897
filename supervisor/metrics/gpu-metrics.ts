/** Metrics of this machine's GPUs, from the last run of nvidia-smi. */
import type { GpuUsage } from '../machine/gpu-usage.js';
import type { HouseMetric, MetricFacts } from './house-metric.js';
import type { Measured } from './measured.js';

const LABELS = ['gpu', 'uuid', 'name'];

export const GPU_METRICS: readonly HouseMetric[] = [
  {
    name: 'banana_gpu_memory_used_bytes',
    type: 'gauge',
    labels: LABELS,
    help: 'GPU memory in use by any process.',
    measure: perGpu(({ usedBytes }) => usedBytes),
  },
  {
    name: 'banana_gpu_memory_total_bytes',
    type: 'gauge',
    labels: LABELS,
    help: 'Memory of a GPU.',
    measure: perGpu(({ totalBytes }) => totalBytes),
  },
  {
    name: 'banana_gpu_utilization_ratio',
    type: 'gauge',
    labels: LABELS,
    help: 'Share of the time in which a GPU was busy, from 0 to 1.',
    measure: perGpu(({ utilization }) => utilization),
  },
];

/** Unknown figures of a card are left out. */
function perGpu(valueOf: (gpu: GpuUsage) => number | null) {
  return ({ sampler }: MetricFacts): Measured[] =>
    sampler.gpus.flatMap((gpu) => {
      const value = valueOf(gpu);
      const { index, uuid, name } = gpu;
      return value === null ? [] : [{ labels: { gpu: index, uuid, name }, value }];
    });
}
