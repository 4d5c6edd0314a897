/** Describes models and workers as they are now, for a snapshot of the page. */
import { basename } from 'node:path';
import { workerState } from '../../models/model-status.js';
import type { Model } from '../../models/model.js';
import type { Registered } from '../../models/models.js';
import type { WorkerHandle } from '../../processes/worker-handle.js';
import type { Slot } from '../../slots/slot.js';
import type { LiveChange, LiveModel, LiveWorker } from '../live-types.js';
import type { LiveRecord } from './live-record.js';
import type { ProcessMemory } from './process-memory.js';

/** The sources of a description. */
export interface ModelFacts {
  readonly record: LiveRecord;
  readonly memory: ProcessMemory;
  /** The server's judgement of the model. */
  readonly state: LiveModel['state'];
  /** Whether it answers at its app's own paths. */
  readonly isDefault: boolean;
  readonly showsWords: boolean;
}

export function describeModel(registered: Registered<Model>, facts: ModelFacts): LiveModel {
  const { model, bounds } = registered;
  const { spec, options, wantedWorkers, dispatcher, standbys } = model;
  const { record, state, isDefault } = facts;
  const { sample, minute, errors, createdAt } = record.meterOf(model);
  return {
    key: record.keys.of(model),
    name: spec.name,
    version: spec.version,
    state,
    isLatched: model.standstill?.state === 'latched',
    problem: model.problem,
    isDefault,
    isDefaultVersion: registered.isDefault,
    app: basename(spec.app),
    runtime: spec.program.label,
    wantedWorkers,
    minWorkers: bounds?.min ?? wantedWorkers,
    maxWorkers: bounds?.max ?? wantedWorkers,
    changes: changesOf(model),
    minute,
    maxQueueCalls: options.queueSize,
    batchSize: options.batchSize,
    initTimeoutMs: options.initTimeout,
    runTimeoutMs: options.runTimeout,
    queueBytes: dispatcher.waitingBytes,
    ...record.totalsOf(model),
    workers: model.slots.map((slot) => describeSlot(slot, stateOf(slot, standbys), createdAt, facts)),
    sample,
    errors,
  };
}

/** Every snapshot has them; `/status` has more. */
const CHANGES_SHOWN = 8;

function changesOf({ scaling }: Model): LiveChange[] {
  const last = scaling?.changes.last.slice(-CHANGES_SHOWN) ?? [];
  return last.map(({ at, worker, change, why }) => ({ at: Date.parse(at), worker, change, why }));
}

/** All workers of a model fail for the same reason, and `LiveDeath.why` has more of it. */
const MAX_FAILURE_CHARS = 300;

function stateOf(slot: Slot, standbys: readonly Slot[]): string {
  const { worker, state } = slot;
  if (worker === null) return state.name;
  const own = workerState(worker);
  return own === 'idle' && standbys.includes(slot) ? 'standby' : own;
}

function describeSlot(
  slot: Slot,
  shown: string,
  modelAt: number,
  { record, memory, showsWords }: ModelFacts,
): LiveWorker {
  const { worker, state, failure } = slot;
  const pids = slot.workers.map(({ pid }) => pid);
  const running = worker === null ? null : runningCall(worker);
  return {
    index: slot.index,
    state: shown,
    since:
      worker === null ? (slot.lastDeath?.at.getTime() ?? modelAt) : Date.now() - Math.round(worker.stateMs),
    pid: worker?.pid ?? null,
    device: slot.device,
    memoryBytes: memory.sumOf(pids),
    startedAt: worker?.startedAt.getTime() ?? null,
    runningMs: running?.ms ?? null,
    requestId: running?.requestId ?? '',
    held: worker?.load ?? 0,
    calls: slot.calls,
    restarts: slot.restarts,
    retryInMs: state.name === 'backoff' ? Math.max(0, Math.round(state.untilMs - performance.now())) : null,
    waitsFor: slot.startWait?.reason ?? null,
    next: state.name !== 'renewing' ? null : state.next === null ? 'waiting' : workerState(state.next),
    failure:
      failure === null
        ? null
        : { code: failure.code, message: showsWords ? failure.detail.slice(0, MAX_FAILURE_CHARS) : '' },
    lastDeath: record.deaths.idOf(slot),
  };
}

function runningCall(worker: WorkerHandle): { readonly ms: number; readonly requestId: string } | null {
  if (worker.load === 0) return null;
  const beganAtMs = worker.lookUpCallBegan();
  if (beganAtMs === null) return null;
  return { ms: Math.round(performance.now() - beganAtMs), requestId: worker.lookUpRunningRequestId() };
}
