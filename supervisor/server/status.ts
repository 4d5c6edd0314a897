/** `GET /status`: one snapshot of everything an operator asks at 3 a.m. Times in ms, sizes in bytes. */
import type { IntervalHistogram } from 'node:perf_hooks';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { Model } from '../models/model.js';
import type { WorkerState } from '../processes/worker-lifecycle.js';
import type { Slot } from '../slots/slot.js';
import type { ModelStatus, ServerStatus, WorkerStateName, WorkerStatus } from './server-status.js';

/** Period of the timer that measures the event loop's delay. */
export const DELAY_RESOLUTION_MS = 10;

export interface ServerFacts {
  readonly version: string;
  readonly startedAt: Date;
  readonly eventLoopDelay: IntervalHistogram;
  readonly replies: ReadonlyMap<string, number>;
}

export function serverStatus(facts: ServerFacts, model: Model, unsent: UnsentAnswers): ServerStatus {
  return {
    state: model.health,
    version: facts.version,
    pid: process.pid,
    startedAt: facts.startedAt.toISOString(),
    uptimeMs: Date.now() - facts.startedAt.getTime(),
    model: modelStatus(model),
    replies: Object.fromEntries(facts.replies),
    unsent: unsent.describe(),
    front: {
      rssBytes: process.memoryUsage.rss(),
      eventLoopDelayMs: delayStatus(facts.eventLoopDelay),
    },
  };
}

function modelStatus(model: Model): ModelStatus {
  const { dispatcher, options } = model;
  return {
    name: model.spec.name,
    version: model.spec.version,
    app: model.spec.app,
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
