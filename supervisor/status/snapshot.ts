/** `GET /status`: one snapshot of everything an operator asks at 3 a.m. Times in ms, sizes in bytes. */
import type { IntervalHistogram } from 'node:perf_hooks';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { Model } from '../models/model.js';
import type { Models, Registered } from '../models/models.js';
import type { WorkerState } from '../processes/worker-lifecycle.js';
import type { Slot } from '../slots/slot.js';
import { stateOf, type ModelPresence, type Readiness } from './readiness.js';
import type { ModelStatus, ServerStatus, WorkerStateName, WorkerStatus } from './server-status.js';

/** Period of the timer that measures the event loop's delay. */
export const DELAY_RESOLUTION_MS = 10;

export interface ServerFacts {
  readonly version: string;
  readonly startedAt: Date;
  readonly eventLoopDelay: IntervalHistogram;
  readonly replies: ReadonlyMap<string, number>;
}

export function serverStatus(
  facts: ServerFacts,
  served: DescribedModels,
  unsent: UnsentAnswers,
  { state }: Readiness,
): ServerStatus {
  const models = describeModels(served);
  const { default: first } = served.registry;
  return {
    state: state === 'unloaded' ? 'unhealthy' : state,
    version: facts.version,
    pid: process.pid,
    startedAt: facts.startedAt.toISOString(),
    uptimeMs: Date.now() - facts.startedAt.getTime(),
    model: models.find(({ name, version }) => isOf(first, name, version)) ?? models[0] ?? NO_MODEL,
    models,
    replies: Object.fromEntries(facts.replies),
    unsent: unsent.describe(),
    front: {
      rssBytes: process.memoryUsage.rss(),
      eventLoopDelayMs: delayStatus(facts.eventLoopDelay),
    },
  };
}

/** The models to describe: `server/models/served-models.ts` has them. */
export interface DescribedModels {
  readonly registry: Models;
  presenceOf(model: Model): ModelPresence;
}

/** Every version of every model, those that are leaving last. */
export function describeModels(served: DescribedModels): ModelStatus[] {
  return served.registry.describe().map((registered) => {
    const { model, isLeaving } = registered;
    return modelStatus(registered, isLeaving ? 'unloading' : stateOf(served.presenceOf(model)));
  });
}

function isOf(model: Model | null, name: string, version: string): boolean {
  return model?.spec.name === name && model.spec.version === version;
}

function modelStatus(
  { model, isDefault, isFirst, bounds }: Registered<Model>,
  state: ModelStatus['state'],
): ModelStatus {
  const { dispatcher, options, wantedWorkers } = model;
  return {
    name: model.spec.name,
    version: model.spec.version,
    state,
    isDefaultVersion: isDefault,
    loadedAtStartup: isFirst,
    minWorkers: bounds?.min ?? wantedWorkers,
    maxWorkers: bounds?.max ?? wantedWorkers,
    app: model.spec.app,
    runtime: model.spec.program.label,
    interpreter: model.spec.program.interpreter,
    routes: model.routes === null ? null : [...model.routes.keys()],
    queue: {
      waiting: dispatcher.queued,
      arriving: dispatcher.arriving,
      bytes: dispatcher.waitingBytes,
      maxCalls: options.queueSize,
      maxBytes: dispatcher.maxWaitingBytes,
    },
    inFlight: dispatcher.inFlight,
    runMs: { mean: rounded(dispatcher.service.meanMs), slow: rounded(dispatcher.service.slowMs) },
    workers: model.slots.map(slotStatus),
  };
}

/** Stands where a program expects a model and there is none. */
const NO_MODEL: ModelStatus = {
  name: '',
  version: '',
  state: 'unloaded',
  isDefaultVersion: false,
  loadedAtStartup: false,
  minWorkers: 0,
  maxWorkers: 0,
  app: '',
  runtime: '',
  interpreter: null,
  routes: null,
  queue: { waiting: 0, arriving: 0, bytes: 0, maxCalls: 0, maxBytes: 0 },
  inFlight: 0,
  runMs: { mean: null, slow: null },
  workers: [],
};

function slotStatus(slot: Slot): WorkerStatus {
  const { worker, state, lastDeath } = slot;
  return {
    index: slot.index,
    state:
      worker === null
        ? state.name
        : worker.state === 'ready' && worker.load > 0
          ? 'busy'
          : idleOr(worker.state),
    pid: worker?.pid ?? null,
    device: slot.device,
    uptimeMs: worker === null ? null : Math.round(worker.uptimeMs),
    initMs: worker === null ? null : rounded(worker.initMs),
    calls: slot.calls,
    held: worker?.load ?? 0,
    restarts: slot.restarts,
    next: state.name !== 'renewing' ? null : state.next === null ? 'waiting' : idleOr(state.next.state),
    retryInMs: state.name === 'backoff' ? Math.max(0, Math.round(state.untilMs - performance.now())) : null,
    lastExit:
      lastDeath === null
        ? null
        : {
            how: lastDeath.how,
            why: lastDeath.fatal?.message ?? lastDeath.hint,
            code: lastDeath.exit.code,
            signal: lastDeath.exit.signal,
            at: lastDeath.at.toISOString(),
            during: lastDeath.during,
            requestId: lastDeath.call?.requestId ?? null,
            uptimeMs: Math.round(lastDeath.uptimeMs),
          },
  };
}

function idleOr(state: WorkerState): WorkerStateName {
  return state === 'ready' ? 'idle' : state;
}

/** The histogram holds the time between two ticks of a timer; what is beyond its period is delay. */
function delayStatus(delay: IntervalHistogram): ServerStatus['front']['eventLoopDelayMs'] {
  const ms = (ns: number): number => Number(Math.max(0, ns / 1e6 - DELAY_RESOLUTION_MS).toFixed(2));
  return { p50: ms(delay.percentile(50)), p99: ms(delay.percentile(99)), max: ms(delay.max) };
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Number(ms.toFixed(3));
}
