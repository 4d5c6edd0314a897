/** Types of what the scaling policy decides on: the operator's rules and the facts of a moment. */
import type { ScalingHistory } from './history.js';

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

/** The calls that wait for a worker. */
export interface ScaledLine {
  /**
   * Calls in line, due jobs, `/_k/warmup` and load orders. At zero workers a call that is refused because its deadline
   * comes before a worker could be ready counts for the ask that it causes.
   */
  readonly calls: number;
  /** When the newest of them came. */
  readonly lastSinceMs: number;
  /** When it will be given up: its deadline or the queue timeout; Infinity without either. */
  readonly lastUntilMs: number;
}

export interface ScalingFacts {
  readonly nowMs: number;
  /** Workers that may take calls. Workers that leave, or are replaced by a reload, do not count. */
  readonly ready: readonly ScaledWorker[];
  /** Spawn time of each worker that starts; for a slot in backoff, the time of the death. */
  readonly startingSinceMs: readonly number[];
  /** Ready workers beyond these, which take calls at once if more are wanted; default: none. */
  readonly standing?: number;
  /** Null if no call waits. */
  readonly line: ScaledLine | null;
  readonly history: ScalingHistory;
  /** `replayAtMs` of the last decision; 0 before the first. */
  readonly replayAtMs: number;
}
