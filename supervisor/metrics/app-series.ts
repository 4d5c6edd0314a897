/**
 * Collects the metrics of apps per model: counters and histograms are summed over all workers and restarts; a gauge has the
 * last value of each worker until it dies. Workers may be in any language: names that are not valid in Prometheus are
 * changed, and other metrics are left out.
 */
import { splitHeaderLines } from '../../protocol/text/headers.js';
import type { Model } from '../models/model.js';
import type { AppMetric } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';
import { Buckets, SECONDS } from './call-counts.js';
import { MOST_SERIES, keyOf, otherOf, type Family, type Labels, type Measured } from './prometheus.js';

const MOST_NAMES = 100;

type Kind = Family['type'];

interface Series {
  readonly labels: Labels;
  value: Measured['value'];
}

interface OwnFamily {
  readonly kind: Kind;
  readonly series: Map<string, Series>;
}

/** Metrics of one model's app. */
class ModelSeries {
  readonly families = new Map<string, OwnFamily>();
  #count = 0;

  /** Returns false if the app has too many metrics. */
  take(name: string, kind: Kind, labels: Labels, value: number): boolean {
    const known = this.families.get(name);
    if (known === undefined && this.families.size >= MOST_NAMES) return false;
    const family = known ?? { kind, series: new Map<string, Series>() };
    if (known === undefined) this.families.set(name, family);
    add(this.#seriesFor(family, labels), kind, value);
    return true;
  }

  /** Removes the gauges of a worker that has died. */
  dropWorker(worker: string): void {
    for (const { kind, series } of this.families.values()) {
      if (kind !== 'gauge') continue;
      for (const [key, { labels }] of series)
        if (labels['worker'] === worker && series.delete(key)) this.#count -= 1;
    }
  }

  #seriesFor(family: OwnFamily, labels: Labels): Series {
    const key = keyOf(labels);
    const known = family.series.get(key);
    if (known !== undefined) return known;
    const others = otherOf(labels);
    if (this.#count >= MOST_SERIES && keyOf(others) !== key) return this.#seriesFor(family, others);
    const series: Series = { labels, value: family.kind === 'histogram' ? new Buckets(SECONDS) : 0 };
    family.series.set(key, series);
    this.#count += 1;
    return series;
  }
}

function add(series: Series, kind: Kind, value: number): void {
  if (series.value instanceof Buckets) series.value.add(value);
  else series.value = kind === 'counter' ? series.value + value : value;
}

export class AppSeries {
  readonly #byModel = new WeakMap<Model, ModelSeries>();
  readonly #complaints = new Set<string>();
  readonly #models: () => readonly Model[];
  readonly #isTaken: (name: string) => boolean;
  readonly #onProblem: (problem: string) => void;

  /**
   * `models` returns the current models. `isTaken`: whether the server uses a name. `onProblem` is called once for each
   * metric that is left out, also if it is only some of its values.
   */
  constructor(
    models: () => readonly Model[],
    isTaken: (name: string) => boolean,
    onProblem: (problem: string) => void,
  ) {
    this.#models = models;
    this.#isTaken = isTaken;
    this.#onProblem = onProblem;
  }

  measured(model: Model, worker: number, metrics: readonly AppMetric[]): void {
    const series = this.#byModel.get(model) ?? new ModelSeries();
    this.#byModel.set(model, series);
    for (const metric of metrics) this.#take(model, series, worker, metric);
  }

  died(model: Model, { index, worker }: Slot): void {
    if (worker === null) this.#byModel.get(model)?.dropWorker(String(index)); // else the slot has another worker already
  }

  /** Families of the current models. */
  families(): Family[] {
    const families = new Map<string, Family & { readonly measured: Measured[] }>();
    for (const model of this.#models()) {
      for (const [name, { kind, series }] of this.#byModel.get(model)?.families ?? []) {
        const family = families.get(name) ?? { name, type: kind, help: 'Reported by an app.', measured: [] };
        families.set(name, family);
        const { name: modelName, version } = model.spec;
        for (const { labels, value } of series.values())
          family.measured.push({ labels: { model: modelName, version, ...labels }, value });
      }
    }
    return [...families.values()];
  }

  #take(model: Model, series: ModelSeries, worker: number, metric: AppMetric): void {
    const { value } = metric;
    if (typeof value !== 'number' || !Number.isFinite(value)) return; // an error with a text is in the log
    const name = asName(metric.name);
    const kind = KINDS[metric.kind];
    if (kind === 'counter' && value < 0) {
      this.#complain(`a value of the metric ${name} of ${model.spec.name} is left out: a counter only rises`);
      return;
    }
    const conflict = series.families.get(name)?.kind === kind ? null : this.#conflictOf(name, kind);
    if (conflict !== null) {
      this.#complain(`the metric ${name} of ${model.spec.name} is left out: ${conflict}`);
      return;
    }
    const labels = dimensionsOf(metric);
    const own = kind === 'gauge' ? { ...labels, worker: String(worker) } : labels;
    if (!series.take(name, kind, own, value))
      this.#complain(`${model.spec.name} has more than ${MOST_NAMES} metrics; the later ones are left out`);
  }

  /** Prometheus cannot parse a scrape with two metrics of the same name: the app that uses a name first has it. */
  #conflictOf(name: string, kind: Kind): string | null {
    const known = this.#kindOf(name);
    if (known === kind) return null;
    if (known !== undefined) return `a ${known} already has this name`;
    if (this.#isTaken(name)) return 'the server has a metric of this name';
    const histogram = name.replace(/_(?:bucket|sum|count)$/, '');
    const isPart = histogram !== name && this.#kindOf(histogram) === 'histogram';
    const hasPart = kind === 'histogram' && PARTS.some((part) => this.#kindOf(name + part) !== undefined);
    return isPart || hasPart ? 'it would be mistaken for a part of a histogram' : null;
  }

  /** The kind for which an app of the current models uses this name. */
  #kindOf(name: string): Kind | undefined {
    return this.#models()
      .map((model) => this.#byModel.get(model)?.families.get(name)?.kind)
      .find((kind) => kind !== undefined);
  }

  #complain(problem: string): void {
    if (this.#complaints.has(problem) || this.#complaints.size >= MOST_NAMES) return;
    this.#complaints.add(problem);
    this.#onProblem(problem);
  }
}

const PARTS = ['_bucket', '_sum', '_count'];

/** Prometheus kind of each kind of metric. Times, sizes and the like are gauges, as in TorchServe. */
const KINDS: Readonly<Record<AppMetric['kind'], Kind>> = {
  counter: 'counter',
  gauge: 'gauge',
  time: 'gauge',
  size: 'gauge',
  percent: 'gauge',
  error: 'gauge',
  histogram: 'histogram',
};

/** Labels that the server adds. */
const OWN_LABELS: readonly string[] = ['model', 'version', 'worker', 'le', 'quantile'];

/**
 * Dimensions as sorted labels, so that their order does not matter. Leaves out the dimensions that Multi Model Server adds
 * to every metric of a service, which the server's own labels contain.
 */
function dimensionsOf({ dimensions }: AppMetric): Labels {
  const pairs = splitHeaderLines(dimensions).filter(([name]) => name !== 'ModelName' && name !== 'Level');
  const labels = pairs.map(([name, value]) => {
    const label = asName(name);
    return [
      OWN_LABELS.includes(label) || label.startsWith('__') ? `exported_${label}` : label,
      value,
    ] as const;
  });
  return Object.fromEntries(labels.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

function asName(text: string): string {
  const name = text.replace(/\W/g, '_');
  return /^\d|^$/.test(name) ? `_${name}` : name;
}
