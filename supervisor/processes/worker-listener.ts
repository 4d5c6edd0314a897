/** The interface between a worker and its model, besides calls: limits for the worker, and its events. */
import type { ServeError } from '../../protocol/errors.js';
import type { Hello, LoadedInfo, Message, Metric, WebhookOrder } from '../../protocol/wire/messages.js';
import type { Call } from '../dispatch/call.js';
import type { NamedLimit } from '../machine/limit-timer.js';
import type { CallLimits } from '../calls/call-worker.js';
import type { WorkerDeath } from './worker-death.js';
import type { WebhookEvents } from '../webhooks/webhooks.js';
import type { LifeEvent, WorkerState } from './worker-lifecycle.js';

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

/** An event of one worker. */
export type WorkerEvent =
  | {
      readonly type: 'state';
      readonly from: WorkerState;
      readonly to: WorkerState;
      readonly event: LifeEvent;
    }
  /** Its warm-up takes long. */
  | { readonly type: 'slowWarmUp'; readonly advice: string }
  | { readonly type: 'ready' }
  /** It was frozen by a signal while it was idle, or continues. */
  | { readonly type: 'frozen'; readonly isFrozen: boolean }
  /** It gets no more calls, and ends when those that run in it have ended, or with the last of their limits. */
  | { readonly type: 'leaving'; readonly why: string }
  /** It is dead, or begins no more calls: these it has not answered, in order. */
  | { readonly type: 'lost'; readonly calls: readonly Call[]; readonly error: ServeError }
  /** Nothing more comes from it. */
  | { readonly type: 'gone'; readonly death: WorkerDeath }
  | { readonly type: 'callError'; readonly call: Call; readonly error: ServeError }
  /** A line of the app. */
  | Extract<Message, { readonly type: 'log' }>
  | { readonly type: 'metrics'; readonly metrics: readonly AppMetric[] }
  /** A webhook that an app sends. `body` must not be kept. `drop`: it is not taken; no event follows. */
  | {
      readonly type: 'webhook';
      readonly order: WebhookOrder;
      readonly body: Buffer;
      readonly events: WebhookEvents;
      readonly drop: () => void;
    };

/** Receives what happens to one worker. */
export interface WorkerListener {
  /**
   * The app is imported. Returns the limits from now on. `values`: version of the worker's V8 values, as it said in `hello`.
   * @throws SERVE_CONFIG if its options are wrong
   */
  loaded(info: LoadedInfo, hello: Hello): LoadedLimits;
  finished(call: Call, runMs: number | null): void;
  told(event: WorkerEvent): void;
}
