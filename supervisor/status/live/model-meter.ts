/** Measures one model once a second: the change of its counters since the second before, and its gauges. */
import type { Buckets } from '../../metrics/buckets.js';
import type { ModelCalls } from '../../metrics/call-counts.js';
import type { Model } from '../../models/model.js';
import type { LiveMinute, LiveSample } from '../live-types.js';
import { ModelHistory, NO_SAMPLE } from './model-history.js';
import { percentile } from './percentiles.js';

/** The gauges that are sampled. */
export type MeasuredModel = {
  readonly crew: Pick<Model['crew'], 'ready'>;
  readonly dispatcher: Pick<Model['dispatcher'], 'queued' | 'arriving' | 'inFlight'>;
};

/** Calls by error code, `ok` left out. */
export type ErrorCounts = Readonly<Record<string, number>>;

export class ModelMeter {
  readonly history = new ModelHistory();
  /** At most a second after the model was registered. Calendar time. */
  readonly createdAt = Date.now();
  readonly #model: MeasuredModel;
  readonly #calls: ModelCalls;
  #outcomes: Readonly<Record<string, number>> = {};
  readonly #queue: AddedValues;
  readonly #run: AddedValues;
  #batches: readonly [calls: number, batches: number] = [0, 0];
  #sample: LiveSample = NO_SAMPLE;
  #errors: ErrorCounts = {};

  /** `calls` counts from the start of the model on. */
  constructor(model: MeasuredModel, calls: ModelCalls) {
    this.#model = model;
    this.#calls = calls;
    this.#queue = new AddedValues(calls.queueSeconds);
    this.#run = new AddedValues(calls.runSeconds);
  }

  /** The last second. */
  get sample(): LiveSample {
    return this.#sample;
  }

  /** The last minute. */
  get minute(): LiveMinute {
    return { queueP95Ms: this.#queue.minuteP95Ms(), runP95Ms: this.#run.minuteP95Ms() };
  }

  get errors(): ErrorCounts {
    return this.#errors;
  }

  /** Ends a second. `missed`: seconds before it in which nothing was measured. */
  measure(memoryBytes: number | null, missed: number): void {
    for (let i = 0; i < missed; i += 1) {
      this.history.add(NO_SAMPLE, {});
      this.#queue.miss();
      this.#run.miss();
    }
    const outcomes = this.#takeOutcomes();
    const { ok = 0, ...errors } = outcomes;
    const failed = Object.values(errors).reduce((sum, calls) => sum + calls, 0);
    const { crew, dispatcher } = this.#model;
    this.#queue.take();
    this.#run.take();
    this.#errors = errors;
    this.#sample = {
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
    this.history.add(this.#sample, errors);
  }

  #takeOutcomes(): Record<string, number> {
    const now = this.#calls.countOutcomes();
    const before = this.#outcomes;
    this.#outcomes = now;
    const changes = Object.entries(now).map(([code, calls]) => [code, calls - (before[code] ?? 0)] as const);
    return Object.fromEntries(changes.filter(([, calls]) => calls > 0));
  }

  #takeBatchSize(): number | null {
    const [calls, batches] = sumOf(this.#calls.batches());
    const [callsBefore, batchesBefore] = this.#batches;
    if (batches === batchesBefore) return null;
    this.#batches = [calls, batches];
    return Number(((calls - callsBefore) / (batches - batchesBefore)).toPrecision(3));
  }
}

/** Returns the number of calls and of batches. */
function sumOf(sizes: readonly (readonly [size: number, batches: number])[]): [number, number] {
  let [calls, batches] = [0, 0];
  for (const [size, some] of sizes) {
    calls += size * some;
    batches += some;
  }
  return [calls, batches];
}

const MINUTE_S = 60;

/** The values that were added to a histogram in the last second, and in the last minute. */
class AddedValues {
  readonly #buckets: Buckets;
  /** The counts at the end of each second of the last minute, oldest first; the first one is from before it. */
  #seconds: Float64Array[];
  #added: Float64Array;

  constructor(buckets: Buckets) {
    this.#buckets = buckets;
    this.#seconds = [new Float64Array(buckets.counts.length)];
    this.#added = new Float64Array(buckets.counts.length);
  }

  take(): void {
    const { counts } = this.#buckets;
    this.#added = difference(counts, this.#seconds.at(-1));
    this.#note(counts.slice());
  }

  /** A second was not measured: what was added in it counts for the next one. */
  miss(): void {
    const last = this.#seconds.at(-1);
    if (last !== undefined) this.#note(last);
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
