/** Writes Multi Model Server's metrics as lines of the log, for log parsers. */
import type { HostFigures } from '../machine/host-figures.js';
import type { Model } from '../models/model.js';
import type { ModelObserver } from '../models/model-resources.js';
import { HOSTNAME, metricLine } from '../observe/metric-line.js';
import { LineLimit } from '../observe/line-limit.js';
import {
  workerName,
  type AnswerClass,
  type AnswerLine,
  type AnsweredCall,
  type MmsListener,
} from './mms-events.js';

const MB = 1024 ** 2;
const GB = 1024 ** 3;

export class MmsLines implements MmsListener {
  readonly #write: (line: string) => void;
  readonly #limit = new LineLimit(() => this.#writeCounted());
  /** Answers without a line of their own. */
  readonly #counted = new Map<AnswerClass, number>();

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  answered(status: AnswerClass, _call: AnsweredCall | null, line: AnswerLine): void {
    if (line === 'own' || (line === 'limited' && this.#limit.allows())) this.#count(status, 1);
    else this.#counted.set(status, (this.#counted.get(status) ?? 0) + 1);
  }

  predicted({ spec: { name } }: Model, ms: number, requestIds: readonly string[]): void {
    const what = `PredictionTime.Milliseconds:${rounded(ms)}|#ModelName:${name},Level:Model`;
    this.#line(what, `,requestID:${requestIds.join(',')}`);
  }

  loaded(model: Model, worker: number, ms: number): void {
    this.#line(`${workerName(model, worker)}.Milliseconds:${Math.round(ms)}|#Level:Host`, '');
  }

  hostRead(host: HostFigures): void {
    this.#writeCounted();
    for (const [name, unit, valueOf] of HOST_METRICS)
      this.#line(`${name}.${unit}:${rounded(valueOf(host))}|#Level:Host`, '');
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
    this.#line(`Requests${status}.Count:${count}|#Level:Host`, '');
  }

  /** Formats a line without `metricLine`, which is slower: there are two lines for every call. */
  #line(what: string, requests: string): void {
    const timestampS = Math.floor(Date.now() / 1000);
    this.#write(`${what}|#hostname:${HOSTNAME}${requests},timestamp:${timestampS}`);
  }
}

/** Writes the metrics of custom services as lines in the same form; those of other apps lack the dimension `Level`. */
export function serviceLines(
  write: (model: Model, worker: number, line: string) => void,
): ModelObserver<Model> {
  return {
    told(model, event) {
      if (event.type !== 'metrics') return;
      const now = new Date();
      for (const metric of event.metrics)
        if (HAS_LEVEL.test(metric.dimensions)) write(model, event.worker, metricLine(metric, now));
    },
  };
}

const HAS_LEVEL = /(?:^|\n)Level\n(?:Model|Error)(?:$|\n)/;

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
