/**
 * The metrics of a server. Calls and workers are counted by events, and a sampler measures at intervals. A scrape reads the
 * counts, limits the combinations of labels, and writes the text.
 */
import { asClause } from '../../protocol/text/sentences.js';
import type { MetricsPage } from '../http/request/request-context.js';
import type { Model } from '../models/model.js';
import type { ModelEvent } from '../models/model-resources.js';
import type { DeathCause } from '../processes/worker-death.js';
import { AppSeries } from './app-series.js';
import { HOUSE_METRICS, type HouseMetric, type MetricFacts } from './house-metrics.js';
import { TEXT_TYPE, sampleNames, seriesLimit, writeText, type Family } from './prometheus.js';
import { Sampler } from './sampler.js';
import { TORCHSERVE_NAMES, type TorchServeText } from './torchserve-text.js';

export class ServerMetrics implements MetricsPage {
  /** Started and stopped with the server. */
  readonly sampler: Sampler;
  readonly #facts: MetricFacts;
  readonly #apps: AppSeries;
  readonly #limits: ReadonlyMap<HouseMetric, ReturnType<typeof seriesLimit>>;
  readonly #torchServe: TorchServeText | null;

  /**
   * `facts.calls` is given all calls by others. `torchServe`: metrics with TorchServe's names; null if they are off.
   * `metrics`: those that it writes, beside those of apps.
   */
  constructor(
    facts: Omit<MetricFacts, 'restarts' | 'sampler'>,
    torchServe: TorchServeText | null,
    onProblem: (problem: string) => void,
    metrics: readonly HouseMetric[] = HOUSE_METRICS,
  ) {
    this.#limits = new Map(metrics.map((metric) => [metric, seriesLimit()]));
    this.sampler = new Sampler((problem) => onProblem(`metrics of GPUs: ${asClause(problem)}`));
    this.#facts = { ...facts, restarts: new WeakMap(), sampler: this.sampler };
    this.#torchServe = torchServe;
    this.#apps = new AppSeries(
      () => this.#models(),
      isTaken,
      (problem) => onProblem(`metrics: ${problem}`),
    );
  }

  told(model: Model, event: ModelEvent): void {
    if (event.type === 'metrics') this.#apps.measured(model, event.worker, event.metrics);
    if (event.type !== 'died') return;
    const { slot, death } = event;
    this.#apps.died(model, slot);
    if (death.wanted || !slot.isKept || slot.state.name === 'latched') return; // it is not replaced
    const { restarts } = this.#facts;
    const counts = restarts.get(model) ?? new Map<DeathCause, number>();
    restarts.set(model, counts.set(death.cause, (counts.get(death.cause) ?? 0) + 1));
  }

  async scrape(names: readonly string[]): Promise<{ contentType: string; text: string }> {
    const added = this.#torchServe?.write(this.#models(), this.sampler.gpus.latest, names) ?? '';
    return { contentType: TEXT_TYPE, text: (await writeText(this.#families(names))) + added };
  }

  /** The families in `names`, all if `names` is empty; each is measured when it is asked for. */
  *#families(names: readonly string[]): Generator<Family> {
    const isWanted = (metric: Pick<Family, 'name' | 'type'>): boolean =>
      names.length === 0 || [metric.name, ...sampleNames(metric)].some((name) => names.includes(name));
    for (const [metric, limited] of this.#limits)
      if (isWanted(metric)) yield { ...metric, measured: limited(metric.measure(this.#facts)) };
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
