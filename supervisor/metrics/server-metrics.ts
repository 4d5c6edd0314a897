/**
 * The metrics of a server. Calls and workers are counted by events, and a sampler measures at intervals. A scrape reads the
 * counts, limits the combinations of labels, and writes the text.
 */
import type { MetricsPage } from '../http/request/backend.js';
import { asClause } from '../../protocol/text/sentences.js';
import type { Model } from '../models/model.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import type { Slot } from '../slots/slot.js';
import { AppSeries } from './app-series.js';
import type { CallCounts } from './call-counts.js';
import { CALL_METRICS } from './call-metrics.js';
import { FRONT_METRICS } from './front-metrics.js';
import { GPU_METRICS } from './gpu-metrics.js';
import type { HouseMetric, MetricFacts } from './house-metric.js';
import { sampleNames, type Family } from './measured.js';
import { MEMORY_METRICS } from './memory-metrics.js';
import { QUEUE_METRICS } from './queue-metrics.js';
import { Sampler } from './sampler.js';
import { SeriesLimit } from './series-limit.js';
import { TORCHSERVE_NAMES, type TorchServeText } from './torchserve-text.js';
import { WorkerCounts } from './worker-counts.js';
import { WORKER_METRICS } from './worker-metrics.js';
import { TEXT_TYPE, writeText } from './write-text.js';

export const HOUSE_METRICS: readonly HouseMetric[] = [
  ...CALL_METRICS,
  ...QUEUE_METRICS,
  ...WORKER_METRICS,
  ...MEMORY_METRICS,
  ...FRONT_METRICS,
  ...GPU_METRICS,
];

export class ServerMetrics implements MetricsPage {
  readonly #calls: CallCounts;
  readonly workers = new WorkerCounts();
  readonly #apps: AppSeries;
  readonly #sampler: Sampler;
  readonly #limits = new Map(HOUSE_METRICS.map((metric) => [metric, new SeriesLimit()]));
  readonly #facts: () => Pick<MetricFacts, 'models' | 'unsent' | 'memory'>;
  readonly #torchServe: TorchServeText | null;

  /** `calls` is given all calls by others. `torchServe`: metrics with TorchServe's names; null if they are off. */
  constructor(
    facts: () => Pick<MetricFacts, 'models' | 'unsent' | 'memory'>,
    calls: CallCounts,
    torchServe: TorchServeText | null,
    onProblem: (problem: string) => void,
  ) {
    this.#facts = facts;
    this.#calls = calls;
    this.#torchServe = torchServe;
    this.#sampler = new Sampler((problem) => onProblem(`metrics of GPUs: ${asClause(problem)}`));
    this.#apps = new AppSeries(
      () => this.#models(),
      isTaken,
      (problem) => onProblem(`metrics: ${problem}`),
    );
  }

  ready(): void {}

  died(model: Model, slot: Slot, death: WorkerDeath): void {
    this.workers.died(model, slot, death);
    this.#apps.died(model, slot);
  }

  measured(...args: Parameters<AppSeries['measured']>): void {
    this.#apps.measured(...args);
  }

  start(): void {
    this.#sampler.start();
  }

  stop(): void {
    this.#sampler.stop();
  }

  async scrape(names: readonly string[]): Promise<{ contentType: string; text: string }> {
    const added = this.#torchServe?.write(this.#models(), this.#sampler.gpus, names) ?? '';
    return { contentType: TEXT_TYPE, text: (await writeText(this.#families(names))) + added };
  }

  /** The families in `names`, all if `names` is empty; each is measured when it is asked for. */
  *#families(names: readonly string[]): Generator<Family> {
    const { workers } = this;
    const facts = { ...this.#facts(), calls: this.#calls, workers, sampler: this.#sampler };
    const isWanted = (metric: Pick<Family, 'name' | 'type'>): boolean =>
      names.length === 0 || [metric.name, ...sampleNames(metric)].some((name) => names.includes(name));
    for (const metric of HOUSE_METRICS.filter(isWanted)) {
      const limit = this.#limits.get(metric) as SeriesLimit;
      yield { ...metric, measured: limit.bound(metric.measure(facts)) };
    }
    yield* this.#apps.families().filter(isWanted);
  }

  #models(): Model[] {
    const { models } = this.#facts();
    return models.describe().map(({ model }) => model);
  }
}

/** Whether the server uses this name of a metric, so that apps may not. */
function isTaken(name: string): boolean {
  return name.startsWith('banana_') || TORCHSERVE_NAMES.includes(name);
}
