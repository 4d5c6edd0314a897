/** Builds the record of a model that management pages show. */
import type { ModelRecord, ProcessRecord } from '../http/request/model-management.js';
import { residentBytes } from '../machine/processes.js';
import { WORKER_PHASES, modelStatus, whyOf } from '../models/describe-model.js';
import type { Registered } from '../models/models.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { Slot } from '../slots/slot.js';
import type { RecentCalls } from './answer-counts.js';

/**
 * Builds the record of a model, without the workers that stand by. Reads the memory of each of its processes from the
 * system. Without `showsWords`, the app's words are left out.
 */
export function modelRecord(registered: Registered, recent: RecentCalls, showsWords: boolean): ModelRecord {
  const { model, isLeaving } = registered;
  const { spec, options } = model;
  const serving = model.crew.all.filter((slot) => !model.crew.standbys.includes(slot));
  const processes = serving.flatMap((slot) => slotProcesses(slot, isLeaving, showsWords));
  return {
    ...modelStatus(registered, showsWords),
    url: spec.url,
    readyWorkers: processes.filter((one) => one.state === 'ready').length,
    batchSize: options.batchSize,
    maxBatchDelayMs: options.maxBatchDelay,
    runTimeoutMs: options.runTimeout,
    initTimeoutMs: options.initTimeout,
    recentCalls: recent.of(model),
    processes,
  };
}

/**
 * The living processes of the slot, or one entry without a process. Asks the kernel whether they live, because a death may
 * not have been noticed yet.
 */
function slotProcesses(slot: Slot, isLeaving: boolean, showsWords: boolean): ProcessRecord[] {
  const { index, device, restarts } = slot;
  const common = { index, device, restarts, lastError: lastErrorOf(slot, showsWords) };
  const living = slot.workers.flatMap((worker) => livingProcess(worker, isLeaving) ?? []);
  const hasFailed = !isLeaving && slot.isKept && slot.failure !== null;
  if (living.length > 0)
    return living.map((process) => ({ ...common, ...process, ...(hasFailed ? FAILED : {}) }));
  const state = isLeaving || !slot.isKept ? 'unloading' : hasFailed ? 'failed' : 'loading';
  return [{ ...common, state, pid: null, startedAt: null, memoryBytes: 0 }];
}

/** Also of a start that is under way, after more failed ones than are allowed. */
const FAILED = { state: 'failed' } as const;

/** Null if the process is dead. */
function livingProcess(
  worker: WorkerHandle,
  isLeaving: boolean,
): Pick<ProcessRecord, 'state' | 'pid' | 'startedAt' | 'memoryBytes'> | null {
  const { state, isFrozen, pid, startedAt } = worker;
  const memoryBytes = residentBytes(pid);
  if (memoryBytes === null) return null;
  const recorded = isFrozen && state === 'ready' ? 'loading' : RECORD_STATES[WORKER_PHASES[state]];
  return { state: isLeaving ? 'unloading' : recorded, pid, startedAt, memoryBytes };
}

const RECORD_STATES = { starting: 'loading', ready: 'ready', stopping: 'unloading' } as const;

function lastErrorOf({ failure, lastDeath }: Slot, showsWords: boolean): string {
  if (failure !== null && showsWords) return failure.detail;
  if (lastDeath === null || lastDeath.wanted) return '';
  const why = whyOf(lastDeath, showsWords);
  return why === '' ? lastDeath.how : `${lastDeath.how}: ${why}`;
}
