/** Describes models and workers as they are now, for a snapshot of the page. */
import { basename } from 'node:path';
import { modelStatus } from '../../models/describe-model.js';
import type { ModelStatus, WorkerStatus } from '../../models/model-status.js';
import type { WorkerHandle } from '../../processes/worker-handle.js';
import type { Slot } from '../../slots/slot.js';
import type { LiveChange, LiveModel, LiveWorker } from '../live-types.js';
import type { DescribedModel } from './app-descriptions.js';
import type { LiveRecord } from './live-record.js';
import type { ProcessMemory } from './process-memory.js';

/** Chooses from the status of the model, and adds what only the page shows. */
export function describeModel(
  registered: DescribedModel,
  record: LiveRecord,
  memory: ProcessMemory,
  showsWords: boolean,
): LiveModel {
  const { model, isServerDefault: isDefault } = registered;
  const { crew, options } = model;
  const status = modelStatus(registered, showsWords);
  const { name, version, state, problem, isDefaultVersion, runtime, minWorkers, maxWorkers, queue } = status;
  const { sample, minute, errors, createdAt } = record.meterOf(model);
  return {
    key: record.keys.of(model),
    name,
    version,
    state,
    isLatched: model.health.standstill?.state === 'latched',
    problem,
    isDefault,
    isDefaultVersion,
    app: basename(status.app),
    runtime,
    wantedWorkers: crew.wanted,
    minWorkers,
    maxWorkers,
    changes: changesOf(status),
    minute,
    maxQueueCalls: queue.maxCalls,
    batchSize: options.batchSize,
    initTimeoutMs: options.initTimeout,
    runTimeoutMs: options.runTimeout,
    queueBytes: queue.bytes,
    ...record.totalsOf(model),
    workers: crew.all.map((slot, i) => ({
      ...liveWorker(slot, status.workers[i] as WorkerStatus, createdAt, showsWords),
      memoryBytes: memory.sumOf(slot.workers.map(({ pid }) => pid)),
      lastDeath: record.deaths.idOf(slot),
    })),
    sample,
    errors,
  };
}

/** Every snapshot has them; `/status` has more. */
const CHANGES_SHOWN = 8;

function changesOf({ scaling }: ModelStatus): LiveChange[] {
  const last = scaling?.changes.slice(-CHANGES_SHOWN) ?? [];
  return last.map(({ at, worker, change, why }) => ({ at: Date.parse(at), worker, change, why }));
}

/** All workers of a model fail for the same reason, and `LiveDeath.why` has more of it. */
const MAX_FAILURE_CHARS = 300;

function liveWorker(
  slot: Slot,
  { state, standby, index, pid, device, held, calls, restarts, retryInMs, waitsFor, next }: WorkerStatus,
  modelAt: number,
  showsWords: boolean,
): Omit<LiveWorker, 'memoryBytes' | 'lastDeath'> {
  const { worker, failure } = slot;
  const running = worker === null ? null : runningCall(worker);
  return {
    index,
    state: state === 'idle' && standby ? 'standby' : state,
    since:
      worker === null ? (slot.lastDeath?.at.getTime() ?? modelAt) : Date.now() - Math.round(worker.stateMs),
    pid,
    device,
    startedAt: worker?.startedAt.getTime() ?? null,
    runningMs: running?.ms ?? null,
    requestId: running?.requestId ?? '',
    held,
    calls,
    restarts,
    retryInMs,
    waitsFor,
    next,
    failure:
      failure === null
        ? null
        : { code: failure.code, message: showsWords ? failure.detail.slice(0, MAX_FAILURE_CHARS) : '' },
  };
}

function runningCall(worker: WorkerHandle): { readonly ms: number; readonly requestId: string } | null {
  if (worker.load === 0) return null;
  const beganAtMs = worker.lookUpCallBegan();
  if (beganAtMs === null) return null;
  return { ms: Math.round(performance.now() - beganAtMs), requestId: worker.lookUpRunningRequestId() };
}
