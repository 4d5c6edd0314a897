/** The interface between a worker and its slot, besides calls: limits for the worker, events for the slot. */
import type { ServeError } from '../../protocol/errors.js';
import type { LoadedInfo, Metric } from '../../protocol/wire/messages.js';
import type { Call } from '../dispatch/call.js';
import type { NamedLimit } from '../machine/limit-timer.js';
import type { CallLimits } from '../calls/held-calls.js';
import type { WorkerDeath } from './worker-death.js';
import type { WorkerEvent, WorkerState } from './worker-lifecycle.js';
import type { WebhookTaker } from './worker-webhooks.js';

export interface WorkerLimits extends CallLimits {
  readonly initTimeout: NamedLimit;
}

/** The limits of a worker once it has loaded its app. */
export interface LoadedLimits extends WorkerLimits {
  /** The most calls of a batch that the start message gave the worker; Infinity if it gave none. */
  readonly startBatchSize: number;
}

/** Time limits for a worker that is retired. */
export interface RetireLimits {
  /** Time for the calls that it holds to end. */
  readonly finishMs: number;
  /** Time between the message that asks it to stop and SIGTERM. */
  readonly graceMs: number;
}

/** A metric that an app has sent, with the requests to which it belongs. */
export interface AppMetric extends Omit<Metric, 'callIds'> {
  readonly requestIds: readonly string[];
}

/** Events of a worker, for the slot and the dispatcher. */
export interface WorkerListener {
  /** The app is imported. Returns the limits from now on. @throws SERVE_CONFIG if its options are wrong */
  onLoaded(info: LoadedInfo): LoadedLimits;
  /** Its warm-up takes long. */
  onSlowWarmUp(advice: string): void;
  onReady(): void;
  /** It was frozen by a signal while it was idle, or continues. */
  onFrozen(isFrozen: boolean): void;
  /** It gets no more calls, and ends when those that run in it have ended, or with the last of their limits. */
  onLeaving(why: string): void;
  onFinished(call: Call, runMs: number | null): void;
  /** Calls it held when it died, in order. */
  onLost(calls: Call[], error: ServeError): void;
  onGone(death: WorkerDeath): void;
  onAppLog(level: string, message: string, fields: string, requestId: string): void;
  onMetrics(metrics: readonly AppMetric[]): void;
  onWebhook: WebhookTaker;
  onCallError(call: Call, error: ServeError): void;
  onTransition(from: WorkerState, to: WorkerState, event: WorkerEvent): void;
}
