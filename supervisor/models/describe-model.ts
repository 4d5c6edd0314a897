/** Describes one version of a model as it is now (`ModelStatus`). */
import type { WorkerDeath } from '../processes/worker-death.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerState } from '../processes/worker-lifecycle.js';
import type { Slot } from '../slots/slot.js';
import type { Model } from './model.js';
import type { ModelStatus, ScalingStatus, WorkerStateName, WorkerStatus } from './model-status.js';
import type { Registered } from './models.js';

/** Describes a model as it is now. Without `showsWords`, the app's words are empty. */
export function modelStatus(
  { model, isDefault, isFirst, isLeaving, bounds }: Registered,
  showsWords: boolean,
): ModelStatus {
  const { dispatcher, options } = model;
  const { all, standbys } = model.crew;
  const { state, problem } = model.health;
  return {
    name: model.spec.name,
    version: model.spec.version,
    state: isLeaving ? 'unloading' : state,
    problem,
    isDefaultVersion: isDefault,
    loadedAtStartup: isFirst,
    minWorkers: bounds.min,
    maxWorkers: bounds.max,
    scaling: scalingStatus(model),
    app: model.spec.app,
    runtime: model.spec.program.label,
    interpreter: model.spec.program.interpreter ?? null,
    task: model.info?.task ?? null,
    routes: model.routes === null ? null : [...model.routes.keys()],
    queue: {
      waiting: dispatcher.queued,
      arriving: dispatcher.arriving,
      bytes: dispatcher.waitingBytes,
      maxCalls: options.queueSize,
      maxBytes: dispatcher.budget.limitBytes,
    },
    inFlight: dispatcher.inFlight,
    standby: { wanted: options.standby, ready: standbys.filter(isReady).length },
    runMs: { mean: rounded(dispatcher.service.meanMs), slow: rounded(dispatcher.service.slowMs) },
    workers: all.map((slot) => slotStatus(slot, standbys.includes(slot), showsWords)),
  };
}

/** The status of no model, for a server that has none. */
export const NO_MODEL: ModelStatus = {
  name: '',
  version: '',
  state: 'unloaded',
  problem: null,
  isDefaultVersion: false,
  loadedAtStartup: false,
  minWorkers: 0,
  maxWorkers: 0,
  scaling: null,
  app: '',
  runtime: '',
  interpreter: null,
  task: null,
  routes: null,
  queue: { waiting: 0, arriving: 0, bytes: 0, maxCalls: 0, maxBytes: 0 },
  inFlight: 0,
  standby: { wanted: 0, ready: 0 },
  runMs: { mean: null, slow: null },
  workers: [],
};

function scalingStatus({ crew: { wanted: wantedWorkers }, sizing }: Model): ScalingStatus | null {
  const { rules, changes, demand } = sizing;
  if (rules === null) return null;
  const { idleTimeoutMs, targetWaitMs } = rules;
  const startMs = Math.round(demand.startMs);
  return { wantedWorkers, idleTimeoutMs, targetWaitMs, startMs, changes };
}

function isReady({ worker }: Slot): boolean {
  return worker?.state === 'ready' && !worker.isFrozen;
}

function slotStatus(slot: Slot, standby: boolean, showsWords: boolean): WorkerStatus {
  const { worker, state, lastDeath } = slot;
  return {
    index: slot.index,
    state: workerState(worker, state.name),
    standby,
    pid: worker?.pid ?? null,
    device: slot.device,
    uptimeMs: worker === null ? null : Math.round(worker.uptimeMs),
    initMs: worker === null ? null : rounded(worker.initMs),
    calls: slot.calls,
    held: worker?.load ?? 0,
    restarts: slot.restarts,
    next: state.name === 'renewing' ? workerState(state.next, 'waiting') : null,
    retryInMs: state.name === 'backoff' ? Math.max(0, Math.round(state.untilMs - performance.now())) : null,
    waitsFor: slot.startWait?.reason ?? null,
    lastExit:
      lastDeath === null
        ? null
        : {
            how: lastDeath.how,
            why: whyOf(lastDeath, showsWords),
            code: lastDeath.exit.code,
            signal: lastDeath.exit.signal,
            at: lastDeath.at.toISOString(),
            during: lastDeath.during,
            requestId: lastDeath.call?.facts.requestId ?? null,
            uptimeMs: Math.round(lastDeath.uptimeMs),
          },
  };
}

/** The reason of a death: the app's words if the worker gave one, else the server's guess. */
export function whyOf({ fatal, hint }: Pick<WorkerDeath, 'fatal' | 'hint'>, showsWords: boolean): string {
  if (fatal === null) return hint;
  return showsWords ? fatal.message : '';
}

/** Returns the state of a worker as people read it; without a worker `none`. */
function workerState(worker: WorkerHandle | null, none: WorkerStateName): WorkerStateName {
  if (worker === null) return none;
  if (worker.state !== 'ready') return worker.state;
  if (worker.isFrozen) return 'frozen';
  return worker.load > 0 ? 'busy' : 'idle';
}

/** The part of its life that a worker is in. */
export const WORKER_PHASES: Readonly<Record<WorkerState, 'starting' | 'ready' | 'stopping'>> = {
  spawning: 'starting',
  loading: 'starting',
  initializing: 'starting',
  warming: 'starting',
  ready: 'ready',
  finishing: 'stopping',
  stopping: 'stopping',
  killing: 'stopping',
  gone: 'stopping',
};

function rounded(ms: number | null): number | null {
  return ms === null ? null : Number(ms.toFixed(3));
}
