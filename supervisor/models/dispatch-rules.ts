/** What a model's options and routes mean for its queue. Pure. */
import type { DispatchLimits } from '../dispatch/dispatcher.js';
import type { Job } from '../dispatch/job.js';
import type { ModelOptions } from '../options/resolve.js';
import type { Routes } from './app-word.js';

/** Whether a job that waits can still be answered, now that the app is loaded, perhaps anew. */
export function fits({ call, conversation }: Job, routes: Routes): boolean {
  const route = routes.get(call.route);
  return route !== undefined && (route.kind === 'websocket') === (conversation !== null);
}

/** `refusesCalls`: nothing can join a batch any more, so none waits for it. */
export function dispatchLimits(options: ModelOptions, refusesCalls: boolean): DispatchLimits {
  return {
    queueSize: options.queueSize,
    queueTimeoutMs: options.queueTimeout,
    batchSize: options.batchSize,
    // A call that waits longer could time out in the queue beside an idle worker.
    maxBatchDelayMs: refusesCalls ? 0 : Math.min(options.maxBatchDelay, options.queueTimeout / 2),
  };
}
