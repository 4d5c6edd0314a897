/** The resources that a model uses, the parts that it makes of them, and the events that it reports. */
import type { ServeError } from '../../protocol/errors.js';
import type { Hello, LoadedInfo } from '../../protocol/wire/messages.js';
import type { MemoryBudget } from '../budget/memory-budget.js';
import type { ByteBudget } from '../dispatch/arrivals.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { SendAhead } from '../dispatch/batcher.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { Devices } from '../machine/placement.js';
import type { Log } from '../observe/log.js';
import type { OutputRelay } from '../observe/output-relay.js';
import type { FullModelRef } from '../options/model-name.js';
import type { OrphanGuard } from '../processes/orphan-guard.js';
import type { SpareProcesses } from '../processes/spare-processes.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import type { AppMetric, RetireLimits } from '../processes/worker-listener.js';
import type { WorkerProgram } from '../runtimes/runtime.js';
import type { Slot } from '../slots/slot.js';
import type { SpawnGate } from '../slots/spawn-gate.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import type { Crew } from './crew.js';
import type { Generations } from './generations.js';
import type { ModelHealth } from './model-health.js';
import type { ModelLog } from './model-log.js';
import type { StartReporter } from './slow-starts.js';
import type { Standstill } from './slot-summary.js';

/** Shared by all models of a server. */
export interface ServerResources {
  readonly guard: OrphanGuard;
  readonly spares: SpareProcesses;
  readonly relay: Pick<OutputRelay, 'attach'>;
  /** Whether prints are marked with their call, for the JSON log. */
  readonly attributePrints: boolean;
  /** The largest answer that is not a stream. */
  readonly maxOutputBytes: number;
  /** Pattern of the names of variables that no worker gets. */
  readonly withheldEnv: RegExp | null;
  readonly devices: Devices;
  readonly gate: SpawnGate;
  /** Bounds the bytes that wait for workers. */
  readonly budget: ByteBudget;
  /** The memory that workers may use; null without a limit. */
  readonly memory: MemoryBudget | null;
  readonly log: Log;
  readonly webhooks: Pick<Webhooks, 'send'>;
  readonly jobs: Pick<KeptJobs, 'openFeed'>;
  /** Returns the name of a model in logs if the server has several; else an empty string. */
  labelOf(model: FullModelRef): string;
  /** Whether calls that name no version get this one. */
  isDefault(ref: FullModelRef): boolean;
  /** Shows the progress of starts that take more than a few seconds. */
  readonly startReporter: StartReporter;
  /** Default: `sendAhead`; bench/send-ahead.ts compares other rules with it. */
  readonly sendAhead: SendAhead | undefined;
  /** Time limits for workers that leave because they are not needed. */
  readonly retireLimits: RetireLimits;
  /** Whether the apps' files are watched: code that cannot start waits for its next change. */
  readonly watch: boolean;
  /** Refuses an app that has just been loaded, for good. `hello`: that of its worker. Left out: all are taken. @throws ServeError */
  readonly checkApp?: (info: LoadedInfo, program: WorkerProgram, hello: Hello) => void;
  /** Whether the load of every model is measured, for metrics. */
  readonly measuresLoad: boolean;
}

/** The parts of one model on which its decisions stand. */
export interface ModelCore {
  readonly resources: ServerResources;
  readonly generations: Generations;
  readonly dispatcher: Dispatcher;
  readonly crew: Crew;
  readonly health: ModelHealth;
  readonly log: ModelLog;
  /** Tells the host an event of the model. */
  tell(event: ModelEvent): void;
}

/** An event of one model, for the host. */
export type ModelEvent =
  /** A worker is ready for the first time. */
  | { readonly type: 'firstReady' }
  /** A worker is ready, `startMs` after its process was started. */
  | { readonly type: 'ready'; readonly worker: number; readonly startMs: number }
  /** A worker died; the state of the slot says what follows. */
  | { readonly type: 'died'; readonly slot: Slot; readonly death: WorkerDeath }
  /** A worker has sent metrics of its app. */
  | { readonly type: 'metrics'; readonly worker: number; readonly metrics: readonly AppMetric[] }
  /** Every slot has become latched or failing; calls are refused. */
  | { readonly type: 'standstill'; readonly standstill: Standstill }
  /** Its workers do not fit into the memory budget. `wasWell`: it had one within the budget before. */
  | { readonly type: 'misfit'; readonly error: ServeError; readonly wasWell: boolean }
  /** Every slot is closed, because the model was. */
  | { readonly type: 'closed' };

/** Receives the events of all models. */
export interface ModelObserver<M> {
  told(model: M, event: ModelEvent): void;
}
