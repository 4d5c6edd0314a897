/** What is true of a model now, for whoever manages it: its options, its line, and each process that it has. */
import type { ModelFacts, WorkerFacts } from '../http/request/model-management.js';
import { residentBytes } from '../machine/process-memory.js';
import type { Model } from '../models/model.js';
import type { Registered } from '../models/models.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerState } from '../processes/worker-lifecycle.js';
import type { Slot } from '../slots/slot.js';
import type { CallCounts } from './recent-calls.js';

export function modelFacts(
  { model, isDefault, isFirst, isLeaving, bounds }: Registered<Model>,
  recentCalls: CallCounts,
): ModelFacts {
  const { spec, options, wantedWorkers, dispatcher } = model;
  const workers = model.slots.flatMap((slot) => slotFacts(slot, isLeaving));
  return {
    name: spec.name,
    version: spec.version,
    url: spec.url,
    runtime: spec.program.label,
    isDefaultVersion: isDefault,
    isLoadedAtStartup: isFirst,
    isLeaving,
    minWorkers: bounds?.min ?? wantedWorkers,
    maxWorkers: bounds?.max ?? wantedWorkers,
    wantedWorkers,
    readyWorkers: workers.filter(({ state }) => state === 'ready').length,
    batchSize: options.batchSize,
    maxBatchDelayMs: options.maxBatchDelay,
    runTimeoutMs: options.runTimeout,
    initTimeoutMs: options.initTimeout,
    queueSize: options.queueSize,
    recentCalls,
    waitingCalls: dispatcher.queued + dispatcher.arriving,
    workers,
  };
}

/**
 * Each process of the slot that lives; a slot that has none is there, too, as what becomes of it. A death may not have
 * been noticed yet: the kernel knows.
 */
function slotFacts(slot: Slot, isLeaving: boolean): WorkerFacts[] {
  const { index, device, restarts } = slot;
  const common = { index, device, restarts, lastError: lastErrorOf(slot) };
  const living = slot.workers.flatMap((worker) => processFacts(worker, isLeaving) ?? []);
  if (living.length > 0) return living.map((facts) => ({ ...common, ...facts }));
  const state =
    isLeaving || !slot.isKept ? 'unloading' : slot.state.name === 'latched' ? 'failed' : 'loading';
  return [{ ...common, state, pid: null, startedAt: null, memoryBytes: 0 }];
}

type ProcessFacts = Pick<WorkerFacts, 'state' | 'pid' | 'startedAt' | 'memoryBytes'>;

/** Null if it is dead. */
function processFacts({ state, pid, startedAt }: WorkerHandle, isLeaving: boolean): ProcessFacts | null {
  const memoryBytes = residentBytes(pid);
  if (memoryBytes === null) return null;
  return { state: isLeaving ? 'unloading' : WORDS[state], pid, startedAt, memoryBytes };
}

const WORDS: Readonly<Record<WorkerState, WorkerFacts['state']>> = {
  spawning: 'loading',
  loading: 'loading',
  initializing: 'loading',
  ready: 'ready',
  finishing: 'unloading',
  stopping: 'unloading',
  killing: 'unloading',
  gone: 'unloading',
};

function lastErrorOf({ state, lastDeath }: Slot): string {
  if (state.name === 'latched') return state.error.detail;
  if (lastDeath === null || lastDeath.wanted) return '';
  const why = lastDeath.fatal?.message ?? lastDeath.hint;
  return why === '' ? lastDeath.how : `${lastDeath.how}: ${why}`;
}
