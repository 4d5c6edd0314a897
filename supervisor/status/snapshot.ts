/**
 * Builds the answer to `GET /status`, a snapshot of the server and its models, and the records of models for management pages.
 * Times in ms, sizes in bytes.
 */
import type { IntervalHistogram } from 'node:perf_hooks';
import type { MemoryBudget } from '../budget/memory-budget.js';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { JobStore } from '../jobs/job-store.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { SpareProcesses } from '../processes/spare-processes.js';
import { NO_MODEL, modelStatus, WORKER_PHASES, whyOf } from '../models/describe-model.js';
import type { ModelStatus } from '../models/model-status.js';
import type { ReadinessAnswer } from '../http/request/request-context.js';
import type { Models, Registered } from '../models/models.js';
import type { ServerStatus } from './server-status.js';
import type { ModelRecord, ProcessRecord } from '../http/request/model-management.js';
import { residentBytes } from '../machine/processes.js';
import { delayOf } from '../metrics/sampler.js';
import { VERSION } from '../version.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { Slot } from '../slots/slot.js';
import type { RecentCalls } from './answer-counts.js';

/** The parts of a server that its status is about. */
export interface StatusSources {
  readonly facts: {
    readonly startedAt: Date;
    readonly eventLoopDelay: IntervalHistogram;
    readonly replies: ReadonlyMap<string, number>;
  };
  readonly registry: Pick<Models, 'default' | 'describe'>;
  readonly unsent: Pick<UnsentAnswers, 'describe'>;
  readonly jobs: Pick<KeptJobs, 'guard'>;
  readonly spares: Pick<SpareProcesses, 'status'>;
  readonly memory: Pick<MemoryBudget, 'status'> | null;
  readiness(): ReadinessAnswer;
}

export function serverStatus(
  { facts, registry, unsent, jobs, spares, memory, readiness }: StatusSources,
  showsWords: boolean,
): ServerStatus {
  const models = describeModels(registry, showsWords);
  const { state } = readiness();
  const first = registry.default?.spec;
  return {
    state: state === 'unloaded' ? 'unhealthy' : state,
    version: VERSION,
    pid: process.pid,
    startedAt: facts.startedAt.toISOString(),
    uptimeMs: Date.now() - facts.startedAt.getTime(),
    model:
      models.find(({ name, version }) => name === first?.name && version === first.version) ??
      models[0] ??
      NO_MODEL,
    models,
    memory: memory?.status ?? null,
    spares: spares.status,
    replies: Object.fromEntries(facts.replies),
    unsent: unsent.describe(),
    jobs: jobsStatus(jobs.guard, showsWords),
    front: {
      rssBytes: process.memoryUsage.rss(),
      eventLoopDelayMs: delayOf(facts.eventLoopDelay, (ms) => Number(ms.toFixed(2))),
    },
  };
}

/** Names of folders and machines, and the failure's own words, are for clients that may read the words of the app too. */
export function jobsStatus(
  { store: { name }, problem }: { readonly store: Pick<JobStore, 'name'>; readonly problem: string | null },
  showsWords: boolean,
): ServerStatus['jobs'] {
  if (showsWords) return { store: name, problem };
  return { store: name.split(' ', 1)[0] as string, problem: problem === null ? null : 'unavailable' };
}

/** Every version of every model; the ones that are being unregistered come last. `showsWords`: with the apps' words. */
export function describeModels(registry: StatusSources['registry'], showsWords: boolean): ModelStatus[] {
  return registry.describe().map((registered) => modelStatus(registered, showsWords));
}

/**
 * Builds the record of a model, without the workers that stand by. Reads the memory of each of its processes from the
 * system. Without `showsWords`, the app's words are left out.
 */
export function modelRecord(registered: Registered, recent: RecentCalls, showsWords: boolean): ModelRecord {
  const { model, isLeaving } = registered;
  const serving = model.crew.all.filter((slot) => !model.crew.standbys.includes(slot));
  const processes = serving.flatMap((slot) => slotProcesses(slot, isLeaving, showsWords));
  return {
    ...modelStatus(registered, showsWords),
    model,
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
