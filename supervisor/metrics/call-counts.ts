/**
 * Counts calls and their times per model, for `/metrics` and for pages about a model. It runs once for every call, so it only
 * adds to numbers; a scrape adds the labels. The counts of a model are freed with the model.
 */
import { isAppsRefusal, type ServeError } from '../../protocol/errors.js';
import type { Call } from '../dispatch/call.js';
import type { CallFigures, CountedRequest, RequestObserver } from '../http/request/request-context.js';
import type { Model } from '../models/model.js';

/** Powers of two, up to the largest batch that `--batch-size` allows. */
export const BATCH_SIZES: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** Calls of one model. */
export class ModelCalls {
  /** Number of ended calls, by dialect and by `ok` or error code. */
  readonly ends = new Map<string, Map<string, number>>();
  readonly queueSeconds = new Buckets(SECONDS);
  readonly runSeconds = new Buckets(SECONDS);
  readonly totalSeconds = new Buckets(SECONDS);
  #okSeconds = 0;
  /** Number of ended calls, by the size of their batch. */
  readonly #callsBySize: number[] = [];

  ended(dialect: string, code: string): void {
    let codes = this.ends.get(dialect);
    if (codes === undefined) this.ends.set(dialect, (codes = new Map<string, number>()));
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }

  /** Adds the time from the arrival of a call until its answer was sent. */
  lasted(seconds: number, isOk: boolean): void {
    this.totalSeconds.add(seconds);
    if (isOk) this.#okSeconds += seconds;
  }

  began(batchSize: number): void {
    this.#callsBySize[batchSize] = (this.#callsBySize[batchSize] ?? 0) + 1;
  }

  /** Histogram of the sizes of batches whose calls have all ended. */
  countBatches(): Buckets {
    const sizes = new Buckets(BATCH_SIZES);
    for (const [size, batches] of this.batches()) sizes.add(size, batches);
    return sizes;
  }

  /** The counts without dialects and codes. */
  figures(): CallFigures {
    const ends = [...this.ends.values()].flatMap((codes) => [...codes]);
    const countOf = (isWanted: boolean): number =>
      ends.reduce((sum, [code, count]) => sum + ((code === OK) === isWanted ? count : 0), 0);
    return {
      ok: { count: countOf(true), seconds: this.#okSeconds },
      failed: { count: countOf(false), seconds: this.totalSeconds.sum - this.#okSeconds },
      queued: { count: this.queueSeconds.count, seconds: this.queueSeconds.sum },
      run: { count: this.runSeconds.count, seconds: this.runSeconds.sum },
      batches: this.batches().filter(([, count]) => count > 0),
    };
  }

  /** Number of batches whose calls have all ended, by their size, smallest first: n calls of batches of size n are one batch. */
  batches(): [size: number, batches: number][] {
    const batches: [number, number][] = [];
    this.#callsBySize.forEach((calls, size) => batches.push([size, Math.floor(calls / size)]));
    return batches;
  }

  /** Number of ended calls, by `ok` or error code. */
  countOutcomes(): Record<string, number> {
    const outcomes: Record<string, number> = {};
    for (const codes of this.ends.values())
      for (const [code, calls] of codes) outcomes[code] = (outcomes[code] ?? 0) + calls;
    return outcomes;
  }
}

const OK = 'ok';

/** Calls of programs, beside those of dialects. */
const FUNCTION = { name: 'function' };

type Counted = Pick<CountedRequest, 'model' | 'dialect'>;

export class CallCounts implements Partial<RequestObserver> {
  readonly #byModel = new WeakMap<Model, ModelCalls>();
  /** Calls without an existing model. */
  readonly ofNone = new ModelCalls();

  of(model: Model): ModelCalls {
    let calls = this.#byModel.get(model);
    if (calls === undefined) this.#byModel.set(model, (calls = new ModelCalls()));
    return calls;
  }

  settled({ model, dialect }: Counted, call: Call, _status: number, error: ServeError | null): void {
    const calls = model === null ? this.ofNone : this.of(model);
    const nowMs = performance.now();
    const code = error === null || isAppsRefusal(error) ? OK : error.code;
    calls.ended(dialect.name, code);
    calls.queueSeconds.add(call.queueMs(nowMs) / 1000);
    calls.lasted((nowMs - call.acceptedAtMs) / 1000, code === OK);
    if (!call.hasBegun) return;
    calls.began(call.batch === null ? 1 : call.batch.calls);
    if (call.runMs > 0) calls.runSeconds.add(call.runMs / 1000); // unknown for a call that was cut off
  }

  refused({ counts, model, dialect }: Counted & Pick<CountedRequest, 'counts'>, { code }: ServeError): void {
    if (counts) (model === null ? this.ofNone : this.of(model)).ended(dialect.name, code);
  }

  /** A call of a model as a function has ended; `call`: null if it was refused. */
  functionEnded(model: Model, call: Call | null, error: ServeError | null): void {
    const counted = { counts: true, model, dialect: FUNCTION };
    if (call !== null) this.settled(counted, call, 0, error);
    else if (error !== null) this.refused(counted, error);
  }
}

/** Bounds in seconds, from 0.1 ms to 5 min, for calls, their waits and runs. */
export const SECONDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50,
  100, 300,
];

/** A histogram: the number of values in each bucket, and their sum. Adding a value costs some comparisons. */
export class Buckets {
  readonly bounds: readonly number[];
  /** Number of values up to each bound and above the previous one; the last counts values above all bounds. */
  readonly counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  /** Adds `value` as if it was measured `times` times. */
  add(value: number, times = 1): void {
    const { bounds, counts } = this;
    let i = 0;
    while (i < bounds.length && value > (bounds[i] as number)) i += 1;
    counts[i] = (counts[i] as number) + times;
    this.#sum += value * times;
  }

  /** Adds all values of a histogram with the same bounds. */
  addAll({ counts, sum }: Buckets): void {
    for (const [i, count] of counts.entries()) this.counts[i] = (this.counts[i] as number) + count;
    this.#sum += sum;
  }
}
