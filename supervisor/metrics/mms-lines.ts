/** Writes Multi Model Server's metrics as lines of the log, for log parsers. */
import { hostname } from 'node:os';
import { splitHeaderLines } from '../../protocol/text/headers.js';
import type { HostFigures } from '../machine/host-figures.js';
import type { Model } from '../models/model.js';
import { LineLimit } from '../observe/line-limit.js';
import type { AppMetric } from '../processes/worker-listener.js';

export type AnswerClass = '2XX' | '4XX' | '5XX';

/**
 * The line of an answer in a log. `own`: it has one. `limited`: it was given to a client without a key and cost no run.
 * `none`: a probe that is answered as before.
 */
export type AnswerLine = 'own' | 'limited' | 'none';

export class MmsLines {
  readonly #write: (line: string) => void;
  readonly #limit = new LineLimit(() => this.#writeCounted());
  /** Answers without a line of their own. */
  readonly #counted = new Map<AnswerClass, number>();

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  answered(status: AnswerClass, line: AnswerLine): void {
    if (line === 'own' || (line === 'limited' && this.#limit.allows())) this.#count(status, 1);
    else this.#counted.set(status, (this.#counted.get(status) ?? 0) + 1);
  }

  predicted({ spec: { name } }: Model, ms: number, requestIds: readonly string[]): void {
    const what = `PredictionTime.Milliseconds:${rounded(ms)}|#ModelName:${name},Level:Model`;
    this.#line(what, `,requestID:${requestIds.join(',')}`);
  }

  loaded(model: Model, worker: number, ms: number): void {
    this.#line(`${workerName(model, worker)}.Milliseconds:${Math.round(ms)}|#Level:Host`);
  }

  hostRead(host: HostFigures): void {
    this.#writeCounted();
    for (const [name, unit, valueOf] of HOST_METRICS)
      this.#line(`${name}.${unit}:${rounded(valueOf(host))}|#Level:Host`);
  }

  /** Writes the answers that have no line yet. */
  stop(): void {
    this.#limit.close();
    this.#writeCounted();
  }

  #writeCounted(): void {
    for (const [status, count] of this.#counted) this.#count(status, count);
    this.#counted.clear();
  }

  #count(status: AnswerClass, count: number): void {
    this.#line(`Requests${status}.Count:${count}|#Level:Host`);
  }

  /** Formats a line without `metricLine`, which is slower: there are two lines for every call. */
  #line(what: string, requests = ''): void {
    const timestampS = Math.floor(Date.now() / 1000);
    this.#write(`${what}|#hostname:${HOSTNAME}${requests},timestamp:${timestampS}`);
  }
}

/** Multi Model Server's name of a worker, with the port that it would have had. */
export function workerName({ spec: { name } }: Model, worker: number): string {
  return `W-${9000 + worker}-${name}`;
}

/** The metrics of custom services as lines in the same form; those of other apps lack the dimension `Level`. */
export function serviceLines(metrics: readonly AppMetric[]): string[] {
  const now = new Date();
  return metrics
    .filter(({ dimensions }) => HAS_LEVEL.test(dimensions))
    .map((metric) => metricLine(metric, now));
}

const HAS_LEVEL = /(?:^|\n)Level\n(?:Model|Error)(?:$|\n)/;

/** `Name.Unit:value|#Dimension:value,…|#hostname:…,requestID:…,timestamp:…`; request ids are separated by commas. */
export function metricLine(metric: AppMetric, at: Date): string {
  const { name, value, unit, requestIds } = metric;
  const dimensions = splitHeaderLines(metric.dimensions).map((pair) => pair.join(':'));
  const requests = requestIds.length === 0 ? '' : `,requestID:${requestIds.join(',')}`;
  const where = `hostname:${HOSTNAME}${requests},timestamp:${Math.floor(at.getTime() / 1000)}`;
  return `${name}.${UNIT_NAMES.get(unit) ?? unit}:${value}|#${dimensions.join(',')}|#${where}`;
}

/** Read once: it costs a system call, and every call may have a line. */
const HOSTNAME = hostname();

/** Names of units; other units are written as the app gave them. */
const UNIT_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '': 'unit',
    ms: 'Milliseconds',
    s: 'Seconds',
    percent: 'Percent',
    count: 'Count',
    MB: 'Megabytes',
    GB: 'Gigabytes',
    kB: 'Kilobytes',
    B: 'Bytes',
  }),
);

const MB = 1024 ** 2;
const GB = 1024 ** 3;

/** Figures of the machine, with Multi Model Server's names and units. */
export const HOST_METRICS: readonly (readonly [
  name: string,
  unit: string,
  valueOf: (host: HostFigures) => number,
])[] = [
  ['CPUUtilization', 'Percent', ({ cpuPercent }) => cpuPercent],
  ['DiskAvailable', 'Gigabytes', ({ diskAvailableBytes }) => diskAvailableBytes / GB],
  ['DiskUsage', 'Gigabytes', ({ diskUsedBytes }) => diskUsedBytes / GB],
  ['DiskUtilization', 'Percent', ({ diskPercent }) => diskPercent],
  ['MemoryAvailable', 'Megabytes', ({ memoryAvailableBytes }) => memoryAvailableBytes / MB],
  ['MemoryUsed', 'Megabytes', ({ memoryUsedBytes }) => memoryUsedBytes / MB],
  ['MemoryUtilization', 'Percent', ({ memoryPercent }) => memoryPercent],
];

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
