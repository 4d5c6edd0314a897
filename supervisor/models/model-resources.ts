/** The resources that a model uses, and the listener to which it reports. */
import type { MemoryBudget } from '../budget/memory-budget.js';
import type { ByteBudget } from '../dispatch/arrivals.js';
import type { SendAhead } from '../dispatch/send-ahead.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { Devices } from '../machine/devices.js';
import type { Log } from '../observe/log.js';
import type { FullModelRef } from '../options/model-name.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import type { AppMetric, RetireLimits } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';
import type { SpawnGate } from '../slots/spawn-gate.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import type { StartReporter } from './slow-starts.js';
import type { Standstill } from './standstill.js';
import type { WorkerResources } from './start-worker.js';

/** Shared by all models of a server. */
export interface ServerResources extends WorkerResources {
  readonly devices: Devices;
  readonly gate: SpawnGate;
  /** Bounds the bytes that wait for workers. */
  readonly budget: ByteBudget;
  /** The memory that workers may use; null without a limit. */
  readonly memory: MemoryBudget | null;
  readonly log: Log;
  readonly webhooks: Pick<Webhooks, 'send'>;
  readonly jobs: Pick<KeptJobs, 'openFeed'>;
  /** Whether calls that name no version get this one. */
  isDefault(ref: FullModelRef): boolean;
  /** Shows the progress of starts that take more than a few seconds. */
  readonly startReporter: StartReporter;
  /** Default: the rule of `dispatch/send-ahead.ts`; bench/send-ahead.ts compares other rules with it. */
  readonly sendAhead: SendAhead | undefined;
  /** Time limits for workers that leave because they are not needed. */
  readonly retireLimits: RetireLimits;
  /** Whether the apps' files are watched: code that cannot start waits for its next change. */
  readonly watch: boolean;
  /** Whether the load of every model is measured, for metrics. */
  readonly measuresLoad: boolean;
}

export interface ModelListener {
  /** A worker is ready for the first time. */
  onFirstReady(): void;
  /** A worker is ready, `startMs` after its process was started. */
  onReady(worker: number, startMs: number): void;
  /** A worker died; the state of the slot says what follows. */
  onDeath(slot: Slot, death: WorkerDeath): void;
  /** A worker has sent metrics of its app. */
  onMetrics(worker: number, metrics: readonly AppMetric[]): void;
  /** Every slot has become latched or failing; calls are refused. */
  onStandstill(standstill: Standstill): void;
  /** Every slot is closed, because the model was. */
  onClosed(): void;
}

/** Receives the events of the workers of all models. */
export interface WorkerObserver<M> {
  /** A worker is ready, `startMs` after its process was started. */
  ready(model: M, worker: number, startMs: number): void;
  /** A worker died; the state of the slot says what follows. */
  died(model: M, slot: Slot, death: WorkerDeath): void;
  /** A worker has sent metrics of its app. */
  measured(model: M, worker: number, metrics: readonly AppMetric[]): void;
}
