/**
 * The metrics of a server. Calls and workers are counted by events, and a sampler measures at intervals. A scrape reads the
 * counts, limits the combinations of labels, and writes the text.
 */
import type { MetricsPage } from '../http/request/backend.js';
import { asClause } from '../../protocol/text/sentences.js';
import type { Model } from '../models/model.js';
import type { ModelEvent } from '../models/model-resources.js';
import { AppSeries } from './app-series.js';
import type { CallCounts } from './call-counts.js';
import type { HouseMetric, MetricFacts } from './house-metric.js';
import { MACHINE_METRICS } from './machine-metrics.js';
import { SeriesLimit, sampleNames, type Family } from './measured.js';
import { MODEL_METRICS, Restarts } from './model-metrics.js';
import { Sampler } from './sampler.js';
import { TORCHSERVE_NAMES, type TorchServeText } from './torchserve-text.js';
import { TEXT_TYPE, writeText } from './write-text.js';

export const HOUSE_METRICS: readonly HouseMetric[] = [...MODEL_METRICS, ...MACHINE_METRICS];

export class ServerMetrics implements MetricsPage {
  /** Started and stopped with the server. */
  readonly sampler: Sampler;
  readonly #calls: CallCounts;
  readonly #restarts = new Restarts();
  readonly #apps: AppSeries;
  readonly #limits = new Map(HOUSE_METRICS.map((metric) => [metric, new SeriesLimit()]));
  readonly #facts: Pick<MetricFacts, 'models' | 'unsent' | 'memory'>;
  readonly #torchServe: TorchServeText | null;

  /** `calls` is given all calls by others. `torchServe`: metrics with TorchServe's names; null if they are off. */
  constructor(
    facts: Pick<MetricFacts, 'models' | 'unsent' | 'memory'>,
    calls: CallCounts,
    torchServe: TorchServeText | null,
    onProblem: (problem: string) => void,
  ) {
    this.#facts = facts;
    this.#calls = calls;
    this.#torchServe = torchServe;
    this.sampler = new Sampler((problem) => onProblem(`metrics of GPUs: ${asClause(problem)}`));
    this.#apps = new AppSeries(
      () => this.#models(),
      isTaken,
      (problem) => onProblem(`metrics: ${problem}`),
    );
  }

  told(model: Model, event: ModelEvent): void {
    if (event.type === 'metrics') this.#apps.measured(model, event.worker, event.metrics);
    if (event.type !== 'died') return;
    this.#restarts.died(model, event.slot, event.death);
    this.#apps.died(model, event.slot);
  }

  async scrape(names: readonly string[]): Promise<{ contentType: string; text: string }> {
    const added = this.#torchServe?.write(this.#models(), this.sampler.gpus.latest, names) ?? '';
    return { contentType: TEXT_TYPE, text: (await writeText(this.#families(names))) + added };
  }

  /** The families in `names`, all if `names` is empty; each is measured when it is asked for. */
  *#families(names: readonly string[]): Generator<Family> {
    const facts = { ...this.#facts, calls: this.#calls, restarts: this.#restarts, sampler: this.sampler };
    const isWanted = (metric: Pick<Family, 'name' | 'type'>): boolean =>
      names.length === 0 || [metric.name, ...sampleNames(metric)].some((name) => names.includes(name));
    for (const metric of HOUSE_METRICS.filter(isWanted)) {
      const limit = this.#limits.get(metric) as SeriesLimit;
      yield { ...metric, measured: limit.bound(metric.measure(facts)) };
    }
    yield* this.#apps.families().filter(isWanted);
  }

  #models(): Model[] {
    return this.#facts.models.describe().map(({ model }) => model);
  }
}

/** Whether the server uses this name of a metric, so that apps may not. */
function isTaken(name: string): boolean {
  return name.startsWith('banana_') || TORCHSERVE_NAMES.includes(name);
}
