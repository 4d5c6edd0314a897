/** `context.metrics`: the values that a custom service measures while it loads, or for one batch. */
import type { Metric } from '../../../protocol/wire/messages.js';
import { hintOnce } from '../../process/hint-once.js';
import type { AppMetrics } from '../types.js';
import { addPythonNames } from './python-names.js';

/**
 * A dimension of a metric, a name and a value: `new Dimension('Layer', 'conv1')`.
 * @example
 * const measure = ({ metrics }: Context) => metrics.addTime('Decode', 1.5, 0, 'ms', [new Dimension('Layer', 'conv1')]);
 */
export class Dimension {
  readonly name: string;
  readonly value: string;

  constructor(name: string, value: unknown) {
    this.name = String(name);
    this.value = String(value);
  }
}

/** A metric as it was added; `idx` is the index of its item, null for all items. */
export interface StoredMetric {
  readonly kind: Metric['kind'];
  readonly name: string;
  value: number | string;
  readonly unit: string;
  readonly dimensions: readonly Dimension[];
  readonly idx: number | null;
}

const TIME_UNITS: readonly string[] = ['ms', 's'];
const SIZE_UNITS: readonly string[] = ['MB', 'kB', 'GB', 'B'];

/** Maximum total length of name, unit and dimensions of one metric. */
const MAX_CHARS = 4096;

/** Returns the metrics added since the last call, and removes them. */
export let takeMetrics: (store: MetricsStore) => readonly StoredMetric[];

/**
 * Metrics of one batch. In every method `idx` is the index of the item that the metric belongs to; without it, the
 * metric belongs to all items. Values of a counter add up; of any other metric the last value counts. The model's name
 * is appended to the dimensions.
 * @example
 * const measure = (metrics: MetricsStore, bytes: number) => metrics.addSize('Picture', bytes / 1000, 0, 'kB');
 */
export class MetricsStore implements AppMetrics {
  readonly #modelName: string;
  readonly #items: number;
  readonly #own: AppMetrics;
  /** The same under the names of Python. */
  declare readonly add_counter: MetricsStore['addCounter'];
  declare readonly add_time: MetricsStore['addTime'];
  declare readonly add_size: MetricsStore['addSize'];
  declare readonly add_percent: MetricsStore['addPercent'];
  declare readonly add_error: MetricsStore['addError'];
  declare readonly add_metric: MetricsStore['addMetric'];
  #metrics = new Map<string, StoredMetric>();

  static {
    takeMetrics = (store) => {
      const metrics = [...store.#metrics.values()];
      if (metrics.length > 0) store.#metrics = new Map();
      return metrics;
    };
    addPythonNames(MetricsStore.prototype);
  }

  /** `items` is the number of items in the batch; `own` are the metrics that every kind of app has. */
  constructor(modelName: string, items: number, own: AppMetrics) {
    this.#modelName = modelName;
    this.#items = items;
    this.#own = own;
  }

  addCounter(name: string, value: number, idx?: number | null, dimensions?: readonly Dimension[]): void {
    this.#add('counter', name, value, 'count', idx, dimensions);
  }

  /** @throws RangeError unless the unit is `ms` or `s` */
  addTime(
    name: string,
    value: number,
    idx?: number | null,
    unit = 'ms',
    dimensions?: readonly Dimension[],
  ): void {
    if (!TIME_UNITS.includes(unit))
      throw new RangeError("the unit for a timed metric should be one of ['ms', 's']");
    this.#add('time', name, value, unit, idx, dimensions);
  }

  /** @throws RangeError unless the unit is `MB`, `kB`, `GB` or `B` */
  addSize(
    name: string,
    value: number,
    idx?: number | null,
    unit = 'MB',
    dimensions?: readonly Dimension[],
  ): void {
    if (!SIZE_UNITS.includes(unit))
      throw new RangeError("The unit for size based metric is one of ['MB','kB', 'GB', 'B']");
    this.#add('size', name, value, unit, idx, dimensions);
  }

  addPercent(name: string, value: number, idx?: number | null, dimensions?: readonly Dimension[]): void {
    this.#add('percent', name, value, 'percent', idx, dimensions);
  }

  /** Reports an error; the value may be text. It belongs to no item. */
  addError(name: string, value: number | string, dimensions?: readonly Dimension[]): void {
    this.#put({
      kind: 'error',
      name,
      value,
      unit: '',
      dimensions: [...listOf(dimensions), LEVEL_ERROR],
      idx: null,
    });
  }

  addMetric(
    name: string,
    value: number,
    idx?: number | null,
    unit = '',
    dimensions?: readonly Dimension[],
  ): void {
    this.#add('gauge', name, value, unit, idx, dimensions);
  }

  /**
   * Adds to a counter of `GET /metrics`, as in every kind of app: see `InferenceContext.metrics`. It is not written to
   * the log.
   */
  counter(...given: Parameters<AppMetrics['counter']>): void {
    this.#own.counter(...given);
  }

  /** Sets a gauge of `GET /metrics`, a number that may rise and fall. */
  gauge(...given: Parameters<AppMetrics['gauge']>): void {
    this.#own.gauge(...given);
  }

  /** Adds a value to a histogram of `GET /metrics`. */
  histogram(...given: Parameters<AppMetrics['histogram']>): void {
    this.#own.histogram(...given);
  }

  #add(
    kind: Metric['kind'],
    name: string,
    value: number,
    unit: string,
    idx: number | null | undefined,
    dimensions: readonly Dimension[] | undefined,
  ): void {
    if (!Number.isFinite(value)) {
      hintOnce(
        `metric ${name}`,
        () => `metric ${shown(name)}: a value that is not a finite number is dropped.`,
      );
      return;
    }
    const index = idx ?? null;
    if (index !== null && !(Number.isInteger(index) && index >= 0 && index < this.#items))
      throw new RangeError(
        `metric ${shown(name)}: there is no item ${String(idx)}; there are ${this.#items}`,
      );
    const whose = [{ name: 'ModelName', value: this.#modelName }, LEVEL_MODEL];
    this.#put({ kind, name, value, unit, dimensions: [...listOf(dimensions), ...whose], idx: index });
  }

  #put(metric: StoredMetric): void {
    const { kind, name, value, unit, dimensions, idx } = metric;
    const texts = [name, unit, ...dimensions.flatMap((dimension) => [dimension.name, dimension.value])];
    assertTexts(name, texts);
    const key = JSON.stringify([kind, idx, ...texts]);
    const before = this.#metrics.get(key);
    if (before === undefined) this.#metrics.set(key, metric);
    else if (kind === 'counter') addTo(before, value as number);
    else before.value = value;
  }
}

function addTo(counter: StoredMetric, value: number): void {
  const sum = (counter.value as number) + value;
  if (Number.isFinite(sum)) counter.value = sum;
  else
    hintOnce(
      `sum of metric ${counter.name}`,
      () => `metric ${shown(counter.name)}: a value with which its sum is not a finite number is dropped.`,
    );
}

const LEVEL_MODEL: Dimension = { name: 'Level', value: 'Model' };
const LEVEL_ERROR: Dimension = { name: 'Level', value: 'Error' };

function listOf(dimensions: readonly Dimension[] | undefined): readonly Dimension[] {
  if (Array.isArray(dimensions ?? [])) return dimensions ?? [];
  throw new TypeError('the dimensions of a metric must be an array of Dimension');
}

/** @throws TypeError if a text contains a line break, RangeError if they are too long together */
function assertTexts(name: string, texts: readonly string[]): void {
  if (texts.some((text) => typeof text !== 'string'))
    throw new TypeError(`metric ${shown(name)}: its name, unit and dimensions must be text`);
  if (name === '' || texts.some((text) => /[\r\n]/.test(text)))
    throw new TypeError(
      `metric ${shown(name)}: its name must not be empty, and its texts must not contain line breaks`,
    );
  const chars = texts.reduce((sum, text) => sum + text.length, 0);
  if (chars > MAX_CHARS)
    throw new RangeError(
      `metric ${shown(name)}: its texts are ${chars} characters; ${MAX_CHARS} are allowed`,
    );
}

function shown(name: unknown): string {
  return JSON.stringify(String(name).slice(0, 100));
}
