/**
 * The facts by which a model scales, and its recent past among them: when calls came, how long runs and starts took. Everything is bounded,
 * and each call costs O(1) (now and then a pass over a few thousand numbers).
 */
import { ServiceTime } from '../dispatch/service-time.js';

/** Entries of arrivals. While there is room each call has its own, later an entry covers the calls of a short time. */
const ENTRIES = 4096;

/** Runs that are kept for replays. */
const RUNS = 1024;

/** Start times that the prediction of the next one takes into account. */
const STARTS = 5;

/** Arrivals of so many starts are kept. */
const KEPT_STARTS = 4;

/** Recent calls are those of this time, or of two starts if they take longer. */
const RECENT_MS = 10_000;

/** Assumed time from spawn to ready, before one was measured. */
const UNKNOWN_START_MS = 1000;

/** The operator's options of a model that scales by itself. */
export interface ScalingRules {
  readonly min: number;
  readonly max: number;
  /** A worker leaves when it was not needed for this long. */
  readonly idleTimeoutMs: number;
  /** Longest time that a call should wait for a worker. */
  readonly targetWaitMs: number;
  /** Most calls in a batch; 1 without batches. */
  readonly batchSize: number;
}

/** A ready worker; the dispatcher's `ReadyWorker` is one. */
export interface ScaledWorker {
  /** Number of runs that it holds, running or sent ahead; a WebSocket and a stream count until they end. */
  readonly heldBatches: number;
  /** Time since the first of them began; 0 if it is idle. */
  readonly runningMs: number;
  /** Whether a signal has stopped it while it was idle: it takes no call before others, and may leave. */
  readonly isFrozen?: boolean;
}

export interface ScalingFacts {
  readonly nowMs: number;
  /** Workers that may take calls. Workers that leave, or are replaced by a reload, do not count. */
  readonly ready: readonly ScaledWorker[];
  /** Spawn time of each worker that starts; for a slot in backoff, the time of the death. */
  readonly startingSinceMs: readonly number[];
  /** Ready workers beyond these, which take calls at once if more are wanted; default: none. */
  readonly standing?: number;
  /** The calls that wait for a worker; null if none does. */
  readonly line: {
    /**
     * Calls in line, due jobs, `/_k/warmup` and load orders. At zero workers a call that is refused because its deadline
     * comes before a worker could be ready counts for the ask that it causes.
     */
    readonly calls: number;
    /** When the newest of them came. */
    readonly lastSinceMs: number;
    /** When it will be given up: its deadline or the queue timeout; Infinity without either. */
    readonly lastUntilMs: number;
  } | null;
  readonly history: ScalingHistory;
  /** `replayAtMs` of the last decision; 0 before the first. */
  readonly replayAtMs: number;
}

export class ScalingHistory {
  /** Arrivals in the order of time: the calls of an entry are thought of as evenly spread from its first to its last. */
  readonly firstMs = new Float64Array(ENTRIES);
  readonly lastMs = new Float64Array(ENTRIES);
  readonly calls = new Float64Array(ENTRIES);
  readonly service = new ServiceTime();
  /** Arrivals are remembered for this long at least, and for some starts. */
  keepMs: number;
  #length = 0;
  /** Longest time that one entry covers. */
  #mergeMs = 0;
  readonly #runMs = new Float64Array(RUNS);
  readonly #runCalls = new Float64Array(RUNS);
  #runs = 0;
  readonly #startsMs: number[] = [];
  #lastStartMs = -Infinity;
  #lastEndMs = -Infinity;

  /** `keepMs`: at least the idle timeout. */
  constructor(keepMs: number) {
    this.keepMs = keepMs;
  }

  /** A call came. */
  came(atMs: number): void {
    const last = this.#length - 1;
    if (last >= 0 && atMs - (this.firstMs[last] as number) < this.#mergeMs) {
      this.lastMs[last] = atMs;
      this.calls[last] = (this.calls[last] as number) + 1;
      return;
    }
    if (this.#length === ENTRIES) this.#makeRoom(atMs);
    this.firstMs[this.#length] = atMs;
    this.lastMs[this.#length] = atMs;
    this.calls[this.#length] = 1;
    this.#length += 1;
  }

  /** A run of so many calls has ended now; a stream and a WebSocket are runs too. */
  ran(runMs: number, nowMs: number, calls = 1): void {
    this.#lastEndMs = nowMs;
    this.service.add(runMs, 0, calls);
    this.#runMs[this.#runs % RUNS] = runMs;
    this.#runCalls[this.#runs % RUNS] = calls;
    this.#runs += 1;
  }

  /** A worker that was spawned `startMs` ago is ready. */
  started(startMs: number, nowMs: number): void {
    this.#startsMs.push(startMs);
    if (this.#startsMs.length > STARTS) this.#startsMs.shift();
    this.#lastStartMs = Math.max(this.#lastStartMs, nowMs - startMs);
  }

  /** A worker that stood by takes calls from now on: for the number of workers it counts as a start. */
  steppedIn(nowMs: number): void {
    this.#lastStartMs = Math.max(this.#lastStartMs, nowMs);
  }

  /** Expected time from spawn to ready. */
  get startMs(): number {
    if (this.#startsMs.length === 0) return UNKNOWN_START_MS;
    return this.#startsMs.reduce((sum, ms) => sum + ms, 0) / this.#startsMs.length;
  }

  /** The recent calls show what comes. */
  get recentMs(): number {
    return Math.max(RECENT_MS, 2 * this.startMs);
  }

  /** Spawn time of the worker that became ready last, or when one that stood by took calls, if that is later. */
  get lastStartMs(): number {
    return this.#lastStartMs;
  }

  /** When the last call came or the last run ended; -Infinity before the first call. */
  get activeMs(): number {
    const last = this.#length - 1;
    return last < 0 ? this.#lastEndMs : Math.max(this.#lastEndMs, this.lastMs[last] as number);
  }

  /** Number of entries of arrivals. */
  get length(): number {
    return this.#length;
  }

  /** Number of runs that were measured. */
  get runs(): number {
    return this.#runs;
  }

  /** The first entry that has calls since `fromMs`. */
  indexSince(fromMs: number): number {
    let [low, high] = [0, this.#length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.lastMs[middle] as number) < fromMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Time that a run of `calls` calls would take, were it the one before the last `back` that were measured; null without any. */
  runBackMs(back: number, calls: number): number | null {
    const kept = Math.min(this.#runs, RUNS);
    if (kept === 0) return null;
    const index = (this.#runs - 1 - (back % kept)) % RUNS;
    const ms = this.#runMs[index] as number;
    const ranCalls = this.#runCalls[index] as number;
    if (ranCalls === calls) return ms;
    const predicted = this.service.predictMs(calls, 1);
    const expected = this.service.predictMs(ranCalls, 1);
    return predicted === null || expected === null || expected <= 0 ? ms : (ms * predicted) / expected;
  }

  /** Forgets what is too old; if that is little, each entry covers more time. */
  #makeRoom(nowMs: number): void {
    const old = this.indexSince(nowMs - Math.max(this.keepMs, RECENT_MS, KEPT_STARTS * this.startMs));
    for (const column of [this.firstMs, this.lastMs, this.calls]) column.copyWithin(0, old);
    this.#length -= old;
    if (this.#length < ENTRIES / 4) this.#mergeMs = this.#mergeMs < 1 ? 0 : this.#mergeMs / 2;
    while (this.#length > ENTRIES / 2) this.#merge(Math.max(1, 2 * this.#mergeMs));
  }

  #merge(mergeMs: number): void {
    this.#mergeMs = mergeMs;
    let into = 0;
    for (let i = 1; i < this.#length; i += 1) {
      if ((this.lastMs[i] as number) - (this.firstMs[into] as number) < mergeMs) {
        this.lastMs[into] = this.lastMs[i] as number;
        this.calls[into] = (this.calls[into] as number) + (this.calls[i] as number);
        continue;
      }
      into += 1;
      for (const column of [this.firstMs, this.lastMs, this.calls]) column[into] = column[i] as number;
    }
    this.#length = into + 1;
  }
}
