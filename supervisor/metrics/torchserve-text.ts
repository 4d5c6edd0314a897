/**
 * Writes TorchServe's metrics in its form of the text: each label ends with a comma and each number has a point, as its
 * scrapers and rules expect.
 */
import { hostname } from 'node:os';
import type { GpuUsage } from '../machine/nvidia-smi.js';
import type { HostFigures } from '../machine/host-figures.js';
import type { Model } from '../models/model.js';
import { HOST_METRICS, workerName, type AnswerClass } from './mms-lines.js';
import { headOf, pairsOf, type Family, type Labels } from './prometheus.js';

/** Times of an accepted call. */
interface CallTimes {
  readonly queueMs: number;
  readonly runMs: number;
  readonly totalMs: number;
}

/** One combination of labels, and its value. */
type Sample = readonly [labels: Labels, value: number];
type OwnFamily = readonly [name: string, type: Family['type'], samples: readonly Sample[]];

/** Figures of one model. `predictionMs`: null until a batch has succeeded. */
function noFigures() {
  return {
    calls: 0,
    inferenceMs: 0,
    queueMs: 0,
    predictionMs: null as number | null,
    loadMs: new Map<number, number>(),
  };
}

type ModelFigures = ReturnType<typeof noFigures>;

export class TorchServeText {
  /** Null until it was read. */
  host: HostFigures | null = null;
  readonly #answers: Record<AnswerClass, number> = { '2XX': 0, '4XX': 0, '5XX': 0 };
  readonly #byModel = new WeakMap<Model, ModelFigures>();
  readonly #isLegacy: boolean;
  #lastTimes: CallTimes | null = null;

  /** `isLegacy`: a scrape shows only TorchServe's first counters. */
  constructor(isLegacy = false) {
    this.#isLegacy = isLegacy;
  }

  answered(status: AnswerClass): void {
    this.#answers[status] += 1;
  }

  called(model: Model, times: CallTimes): void {
    const figures = this.#of(model);
    figures.calls += 1;
    figures.inferenceMs += times.totalMs;
    figures.queueMs += times.queueMs;
    this.#lastTimes = times;
  }

  predicted(model: Model, ms: number): void {
    this.#of(model).predictionMs = ms;
  }

  loaded(model: Model, worker: number, ms: number): void {
    this.#of(model).loadMs.set(worker, ms);
  }

  /** Writes the metrics of these models and cards, restricted to `names` unless that is empty. */
  write(models: readonly Model[], gpus: readonly GpuUsage[], names: readonly string[]): string {
    return this.families(models, gpus)
      .filter(([name, , samples]) => samples.length > 0 && (!this.#isLegacy || name.startsWith('ts_')))
      .filter(([name]) => names.length === 0 || names.includes(name))
      .flatMap(([name, type, samples]) => [
        ...headOf({ name, type, help: 'The metric of TorchServe with this name.' }),
        ...samples.map(([labels, value]) => `${name}{${textOf(labels)}} ${asDouble(value)}`),
      ])
      .map((line) => `${line}\n`)
      .join('');
  }

  /** Every family, in the order of the text; those without figures have no samples. */
  families(models: readonly Model[], gpus: readonly GpuUsage[]): OwnFamily[] {
    const { host } = this;
    const times = this.#lastTimes;
    const perModel = (valueOf: (figures: ModelFigures) => number): Sample[] =>
      models.map((model) => [ofCalls(model), valueOf(this.#of(model))]);
    const predictions = models.flatMap((model): Sample[] => {
      const { predictionMs } = this.#of(model);
      return predictionMs === null ? [] : [[ofModel(model), predictionMs]];
    });
    return [
      ...Object.entries(this.#answers).map(([status, count]): OwnFamily => {
        return [`Requests${status}`, 'counter', [[ofHost(), count]]];
      }),
      ['ts_inference_requests_total', 'counter', perModel(({ calls }) => calls)],
      ['ts_inference_latency_microseconds', 'counter', perModel(({ inferenceMs }) => 1000 * inferenceMs)],
      ['ts_queue_latency_microseconds', 'counter', perModel(({ queueMs }) => 1000 * queueMs)],
      ['QueueTime', 'gauge', times === null ? [] : [[ofHost(), times.queueMs]]],
      ['WorkerThreadTime', 'gauge', times === null ? [] : [[ofHost(), threadMs(times)]]],
      ['WorkerLoadTime', 'gauge', models.flatMap((model) => this.#loads(model))],
      ...HOST_METRICS.map(([name, , valueOf]): OwnFamily => {
        return [name, 'gauge', host === null ? [] : [[ofHost(), valueOf(host)]]];
      }),
      ['GPUMemoryUsed', 'gauge', perGpu(gpus, ({ usedBytes }) => usedBytes && usedBytes / 1024 ** 2)],
      ['GPUMemoryUtilization', 'gauge', perGpu(gpus, memoryPercent)],
      ['GPUUtilization', 'gauge', perGpu(gpus, ({ utilization }) => utilization && 100 * utilization)],
      ['HandlerTime', 'gauge', predictions],
      ['PredictionTime', 'gauge', predictions],
    ];
  }

  #loads(model: Model): Sample[] {
    return Array.from(this.#of(model).loadMs, ([worker, ms]) => [
      { WorkerName: workerName(model, worker), ...ofHost() },
      Math.round(ms),
    ]);
  }

  #of(model: Model): ModelFigures {
    const figures = this.#byModel.get(model) ?? noFigures();
    this.#byModel.set(model, figures);
    return figures;
  }
}

/** TorchServe's names, which apps may not use. */
export const TORCHSERVE_NAMES: readonly string[] = new TorchServeText()
  .families([], [])
  .map(([name]) => name);

function ofHost(): Labels {
  return { Level: 'Host', Hostname: hostname() };
}

function ofModel({ spec: { name } }: Model): Labels {
  return { ModelName: name, Level: 'Model', Hostname: hostname() };
}

function ofCalls({ spec: { name, version } }: Model): Labels {
  return { model_name: name, model_version: version, hostname: hostname() };
}

/** Time of a call except its wait and its run. */
function threadMs({ totalMs, queueMs, runMs }: CallTimes): number {
  return Math.max(0, totalMs - queueMs - runMs);
}

function memoryPercent({ usedBytes, totalBytes }: GpuUsage): number | null {
  return usedBytes === null || totalBytes === null ? null : (100 * usedBytes) / totalBytes;
}

function perGpu(gpus: readonly GpuUsage[], valueOf: (gpu: GpuUsage) => number | null): Sample[] {
  return gpus.flatMap((gpu): Sample[] => {
    const value = valueOf(gpu);
    const labels = { Level: 'Host', DeviceId: gpu.index, Hostname: hostname() };
    return value === null ? [] : [[labels, value]];
  });
}

function textOf(labels: Labels): string {
  return pairsOf(labels)
    .map((pair) => `${pair},`)
    .join('');
}

/** Formats a number as Java formats a double: `8.0`, `0.5`, `1.2E7`. */
export function asDouble(value: number): string {
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-3 || size >= 1e7)) {
    const [digits = '', exponent = ''] = value.toExponential().split('e');
    return `${withPoint(digits)}E${exponent.replace('+', '')}`;
  }
  return withPoint(String(value));
}

function withPoint(digits: string): string {
  return digits.includes('.') ? digits : `${digits}.0`;
}
