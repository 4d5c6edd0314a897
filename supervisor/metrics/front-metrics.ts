/** Metrics of the front: this process, and the delay of its event loop. */
import { readdirSync } from 'node:fs';
import { VERSION } from '../version.js';
import { one, type HouseMetric } from './house-metric.js';

const STARTED_AT_S = Math.round(Date.now() / 1000 - process.uptime());

export const FRONT_METRICS: readonly HouseMetric[] = [
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
  {
    name: 'banana_front_cpu_seconds_total',
    type: 'counter',
    labels: [],
    help: 'CPU time of the front.',
    measure: one(() => (process.cpuUsage().user + process.cpuUsage().system) / 1e6),
  },
  {
    name: 'banana_front_resident_memory_bytes',
    type: 'gauge',
    labels: [],
    help: 'Memory of the front.',
    measure: one(() => process.memoryUsage.rss()),
  },
  {
    name: 'banana_front_heap_bytes',
    type: 'gauge',
    labels: [],
    help: "Used memory of the front's JavaScript heap.",
    measure: one(() => process.memoryUsage().heapUsed),
  },
  {
    name: 'banana_front_open_fds',
    type: 'gauge',
    labels: [],
    help: 'Open file descriptors of the front; absent on systems without /proc.',
    measure: one(openDescriptors),
  },
  {
    name: 'banana_front_start_time_seconds',
    type: 'gauge',
    labels: [],
    help: 'Start time of the front, in seconds since the epoch.',
    measure: one(() => STARTED_AT_S),
  },
];

function openDescriptors(): number | null {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return null; // not Linux
  }
}
