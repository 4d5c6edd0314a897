/** Builds the answer to `GET /status`: a snapshot of the server and its models. Times in ms, sizes in bytes. */
import type { IntervalHistogram } from 'node:perf_hooks';
import type { MemoryBudget } from '../budget/memory-budget.js';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { SpareProcesses } from '../processes/spare-processes.js';
import { NO_MODEL, modelStatus } from '../models/describe-model.js';
import type { ModelStatus } from '../models/model-status.js';
import type { ReadinessAnswer } from '../http/request/request-context.js';
import type { Models } from '../models/models.js';
import type { ServerStatus } from './server-status.js';

/** Period of the timer that measures the delay of the event loop. */
export const DELAY_RESOLUTION_MS = 10;

/** The parts of a server that its status is about. */
export interface StatusSources {
  readonly facts: {
    readonly version: string;
    readonly startedAt: Date;
    readonly eventLoopDelay: IntervalHistogram;
    readonly replies: ReadonlyMap<string, number>;
  };
  readonly registry: Pick<Models, 'default' | 'describe'>;
  readonly unsent: Pick<UnsentAnswers, 'describe'>;
  readonly jobs: Pick<KeptJobs, 'storeName' | 'problem'>;
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
    version: facts.version,
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
    jobs: jobsStatus(jobs, showsWords),
    front: {
      rssBytes: process.memoryUsage.rss(),
      eventLoopDelayMs: delayStatus(facts.eventLoopDelay),
    },
  };
}

/** Names of folders and machines, and the failure's own words, are for clients that may read the words of the app too. */
export function jobsStatus(
  { storeName, problem }: Pick<KeptJobs, 'storeName' | 'problem'>,
  showsWords: boolean,
): ServerStatus['jobs'] {
  if (showsWords) return { store: storeName, problem };
  return { store: storeName.split(' ', 1)[0] as string, problem: problem === null ? null : 'unavailable' };
}

/** Every version of every model; the ones that are being unregistered come last. `showsWords`: with the apps' words. */
export function describeModels(registry: StatusSources['registry'], showsWords: boolean): ModelStatus[] {
  return registry.describe().map((registered) => modelStatus(registered, showsWords));
}

/** The histogram has the times between two ticks of a timer; the delay is the time beyond its period. */
function delayStatus(delay: IntervalHistogram): ServerStatus['front']['eventLoopDelayMs'] {
  const ms = (ns: number): number => Number(Math.max(0, ns / 1e6 - DELAY_RESOLUTION_MS).toFixed(2));
  return { p50: ms(delay.percentile(50)), p99: ms(delay.percentile(99)), max: ms(delay.max) };
}
