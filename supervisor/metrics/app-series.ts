/**
 * Collects the metrics of apps per model: counters and histograms are summed over all workers and restarts; a gauge has the
 * last value of each worker until it dies. Workers may be in any language: names that are not valid in Prometheus are
 * changed, and other metrics are left out.
 */
import { splitHeaderLines } from '../../protocol/text/headers.js';
import type { Model } from '../models/model.js';
import type { AppMetric } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';
import { Buckets, SECONDS } from './buckets.js';
import { labelsOf } from './house-metric.js';
import { MOST_SERIES, keyOf, otherOf, type Family, type Labels, type Measured } from './measured.js';

const MOST_NAMES = 100;

const LEAST_KINDS = 1000;

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
  /** Kind of each name that any app uses: other apps may use the name only with the same kind. */
  #kinds = new Map<string, Kind>();
  /** Number of names at which those of removed models are dropped. */
  #kindsLimit = LEAST_KINDS;
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
        for (const { labels, value } of series.values())
          family.measured.push({ labels: labelsOf(model, labels), value });
      }
    }
    this.#kinds = new Map([...families.values()].map(({ name, type }) => [name, type]));
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
    const conflict = this.#conflictOf(name, kind);
    if (conflict !== null) {
      this.#complain(`the metric ${name} of ${model.spec.name} is left out: ${conflict}`);
      return;
    }
    this.#note(name, kind);
    const labels = dimensionsOf(metric);
    const own = kind === 'gauge' ? { ...labels, worker: String(worker) } : labels;
    if (!series.take(name, kind, own, value))
      this.#complain(`${model.spec.name} has more than ${MOST_NAMES} metrics; the later ones are left out`);
  }

  /** Records a name. When there are `#kindsLimit` names, those of removed models are dropped. */
  #note(name: string, kind: Kind): void {
    if (this.#kinds.size >= this.#kindsLimit) {
      const families = this.#models().flatMap((model) => [...(this.#byModel.get(model)?.families ?? [])]);
      this.#kinds = new Map(families.map(([known, family]) => [known, family.kind]));
      this.#kindsLimit = Math.max(LEAST_KINDS, 2 * this.#kinds.size);
    }
    this.#kinds.set(name, kind);
  }

  /** Prometheus cannot parse a scrape with two metrics of the same name. */
  #conflictOf(name: string, kind: Kind): string | null {
    const known = this.#kinds.get(name);
    if (known === kind) return null;
    if (known !== undefined) return `a ${known} already has this name`;
    if (this.#isTaken(name)) return 'the server has a metric of this name';
    const histogram = name.replace(/_(?:bucket|sum|count)$/, '');
    const isPart = histogram !== name && this.#kinds.get(histogram) === 'histogram';
    const hasPart = kind === 'histogram' && PARTS.some((part) => this.#kinds.has(name + part));
    return isPart || hasPart ? 'it would be mistaken for a part of a histogram' : null;
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
