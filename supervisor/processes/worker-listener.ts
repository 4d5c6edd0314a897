/** The messages between a worker and its slot, besides calls: limits go down, news comes up. */
import type { ServeError } from '../../protocol/errors.js';
import type { LoadedInfo, Metric } from '../../protocol/wire/messages.js';
import type { Job } from '../dispatch/job.js';
import type { NamedLimit } from '../machine/limit-timer.js';
import type { CallLimits } from '../calls/held-calls.js';
import type { WorkerDeath } from './worker-death.js';
import type { WorkerEvent, WorkerState } from './worker-lifecycle.js';
import type { WebhookTaker } from './worker-webhooks.js';

export interface WorkerLimits extends CallLimits {
  readonly initTimeout: NamedLimit;
}

/** What holds for a worker from now on, once it has loaded its app. */
export interface LoadedLimits extends WorkerLimits {
  /** The most calls of a batch, as the worker was told; Infinity if it was not told. */
  readonly toldBatch: number;
}

/** How long a worker that goes may take. */
export interface RetireLimits {
  /** How long the calls it holds may take to end. */
  readonly finishMs: number;
  /** Time between the message that asks it to stop and SIGTERM. */
  readonly graceMs: number;
}

/** Something that an app has measured, with the requests that it belongs to. */
export interface AppMetric extends Omit<Metric, 'callIds'> {
  readonly requestIds: readonly string[];
}

/** News for the slot and the dispatcher above. */
export interface WorkerListener {
  /** The app is imported. Returns the limits that hold from now on. @throws SERVE_CONFIG if its options are wrong */
  onLoaded(info: LoadedInfo): LoadedLimits;
  onReady(): void;
  onFinished(job: Job, runMs: number | null): void;
  /** Calls it held when it died, in order. */
  onLost(jobs: Job[], error: ServeError): void;
  onGone(death: WorkerDeath): void;
  onAppLog(level: string, message: string, fields: string, requestId: string): void;
  onMetrics(metrics: readonly AppMetric[]): void;
  onWebhook: WebhookTaker;
  onCallError(job: Job, error: ServeError): void;
  onTransition(from: WorkerState, to: WorkerState, event: WorkerEvent): void;
}
