/** Measures one model once a second: the change of its counters since the second before, and its gauges. */
import type { ModelCalls, Buckets } from '../../metrics/call-counts.js';
import type { Model } from '../../models/model.js';
import type { LiveModel, LiveSample, LiveModelHistory } from '../live-types.js';

export class ModelMeter {
  readonly history = new ModelHistory();
  /** At most a second after the model was registered. Calendar time. */
  readonly createdAt = Date.now();
  /** The last second. */
  sample!: LiveSample;
  /** Calls of the last second by error code, `ok` left out. */
  errors: Readonly<Record<string, number>> = {};
  readonly #model: Model;
  /** The counts since the start of the model. */
  readonly calls: ModelCalls;
  #outcomes: Readonly<Record<string, number>> = {};
  readonly #queue: AddedValues;
  readonly #run: AddedValues;
  #batches: readonly [calls: number, batches: number] = [0, 0];

  constructor(model: Model, calls: ModelCalls) {
    this.#model = model;
    this.calls = calls;
    this.#queue = new AddedValues(calls.queueSeconds);
    this.#run = new AddedValues(calls.runSeconds);
  }

  /** The last minute. */
  get minute(): LiveModel['minute'] {
    return { queueP95Ms: this.#queue.minuteP95Ms(), runP95Ms: this.#run.minuteP95Ms() };
  }

  /** Ends a second. `missed`: seconds before it in which nothing was measured. */
  measure(memoryBytes: number | null, missed: number): void {
    for (let i = 0; i < Math.min(missed, SECONDS_KEPT); i += 1) {
      this.history.add(null, {});
      this.#queue.miss();
      this.#run.miss();
    }
    const { ok = 0, ...errors } = this.#takeOutcomes();
    const failed = Object.values(errors).reduce((sum, calls) => sum + calls, 0);
    const { crew, dispatcher } = this.#model;
    this.#queue.take();
    this.#run.take();
    this.errors = errors;
    this.sample = {
      calls: ok + failed,
      failed,
      waiting: dispatcher.queued,
      arriving: dispatcher.arriving,
      running: dispatcher.inFlight,
      queueP50Ms: this.#queue.percentileMs(0.5),
      queueP95Ms: this.#queue.percentileMs(0.95),
      queueP99Ms: this.#queue.percentileMs(0.99),
      runP50Ms: this.#run.percentileMs(0.5),
      runP95Ms: this.#run.percentileMs(0.95),
      runP99Ms: this.#run.percentileMs(0.99),
      batchSize: this.#takeBatchSize(),
      readyWorkers: crew.ready.length,
      memoryBytes,
    };
    this.history.add(this.sample, errors);
  }

  #takeOutcomes(): Record<string, number> {
    const now = this.calls.countOutcomes();
    const before = this.#outcomes;
    this.#outcomes = now;
    const changes = Object.entries(now).map(([code, calls]) => [code, calls - (before[code] ?? 0)] as const);
    return Object.fromEntries(changes.filter(([, calls]) => calls > 0));
  }

  #takeBatchSize(): number | null {
    let [calls, batches] = [0, 0];
    for (const [size, some] of this.calls.batches()) {
      calls += size * some;
      batches += some;
    }
    const [callsBefore, batchesBefore] = this.#batches;
    if (batches === batchesBefore) return null;
    this.#batches = [calls, batches];
    return Number(((calls - callsBefore) / (batches - batchesBefore)).toPrecision(3));
  }
}

const MINUTE_S = 60;

/** The values that were added to a histogram in the last second, and in the last minute. */
class AddedValues {
  readonly #buckets: Buckets;
  /** The counts at the end of each second of the last minute, oldest first; the first one is from before it. */
  readonly #seconds: Float64Array[];
  #added: Float64Array;

  constructor(buckets: Buckets) {
    this.#buckets = buckets;
    this.#added = new Float64Array(buckets.counts.length);
    this.#seconds = [this.#added];
  }

  take(): void {
    const { counts } = this.#buckets;
    this.#added = difference(counts, this.#seconds.at(-1));
    this.#note(counts.slice());
  }

  /** A second was not measured: what was added in it counts for the next one. */
  miss(): void {
    this.#note(this.#seconds.at(-1) as Float64Array);
  }

  percentileMs(share: number): number | null {
    return this.#percentileOf(this.#added, share);
  }

  minuteP95Ms(): number | null {
    return this.#percentileOf(difference(this.#buckets.counts, this.#seconds[0]), 0.95);
  }

  #note(counts: Float64Array): void {
    this.#seconds.push(counts);
    if (this.#seconds.length > MINUTE_S + 1) this.#seconds.shift();
  }

  #percentileOf(counts: Float64Array, share: number): number | null {
    const seconds = percentile(this.#buckets.bounds, counts, share);
    return seconds === null ? null : Number((1000 * seconds).toPrecision(3));
  }
}

function difference(now: Float64Array, before: Float64Array | undefined): Float64Array {
  return now.map((count, i) => count - (before?.[i] ?? 0));
}

/**
 * Estimates the value below which `share` (0 to 1) of the counted values are, as if they were spread evenly over their
 * bucket: exact about the bucket, a guess within it; null if there are none. `counts` has one more entry than `bounds`: for
 * values above all bounds, of which the last bound is returned.
 */
export function percentile(bounds: readonly number[], counts: Float64Array, share: number): number | null {
  let left = share * counts.reduce((sum, count) => sum + count, 0);
  if (left <= 0) return null;
  for (const [i, bound] of bounds.entries()) {
    const count = counts[i] ?? 0;
    const lower = bounds[i - 1] ?? 0;
    if (count >= left) return lower + (bound - lower) * (left / count);
    left -= count;
  }
  return bounds.at(-1) ?? null;
}

export const SECONDS_KEPT = 600;

/** Rings of seconds by name, in arrays whose size never changes; NaN stands for null. Seven digits are enough for a chart. */
type Rings = Map<string, Float32Array>;

/** The samples of one model in the last ten minutes, one per second. */
export class ModelHistory {
  readonly #columns: Rings = new Map();
  /** Calls by error code. There are as many codes as in the table of errors. */
  readonly #errors: Rings = new Map();
  /** Number of seconds so far, dropped ones included. */
  #seconds = 0;

  /** Adds a second; null: it was not measured. `errors`: its calls by error code. */
  add(sample: LiveSample | null, errors: Readonly<Record<string, number>>): void {
    const at = this.#seconds % SECONDS_KEPT;
    note(this.#columns, sample ?? {}, NaN, at);
    note(this.#errors, errors, 0, at);
    this.#seconds += 1;
  }

  /** Returns the seconds that are kept, oldest first. */
  describe(): Omit<LiveModelHistory, 'key'> {
    const errors = Object.entries(this.#inOrder(this.#errors));
    return {
      columns: this.#inOrder(this.#columns) as LiveModelHistory['columns'],
      errors: Object.fromEntries(errors.filter(([, counts]) => counts.some((count) => count !== 0))),
    };
  }

  /** A plain loop: a viewer of 20 models gets 170,000 numbers, and Array.from takes five times as long. */
  #inOrder(rings: Rings): Record<string, (number | null)[]> {
    const length = Math.min(this.#seconds, SECONDS_KEPT);
    const first = this.#seconds - length;
    const columns: Record<string, (number | null)[]> = {};
    for (const [name, ring] of rings) {
      const values = new Array<number | null>(length);
      for (let i = 0; i < length; i += 1) {
        const value = ring[(first + i) % SECONDS_KEPT] as number;
        values[i] = Number.isNaN(value) ? null : Math.round(100 * value) / 100;
      }
      columns[name] = values;
    }
    return columns;
  }
}

/** Writes a second into every ring; `none` takes the place of values that are missing, also in the seconds before. */
function note(rings: Rings, values: Readonly<Record<string, number | null>>, none: number, at: number): void {
  for (const name of Object.keys(values))
    if (!rings.has(name)) rings.set(name, new Float32Array(SECONDS_KEPT).fill(none));
  for (const [name, ring] of rings) ring[at] = values[name] ?? none;
}
