/**
 * Applies the options and routes in force: limits to the queue and the workers, routes to the calls that wait.
 * Before: `Generations` holds what is in force. After: the dispatcher and the workers follow it.
 */
import type { DispatchLimits } from '../dispatch/dispatcher.js';
import type { Call } from '../dispatch/call.js';
import type { ModelOptions } from '../options/resolve.js';
import type { Routes } from './generations.js';
import type { ModelCore } from './model-resources.js';
import { workerLimits } from './start-worker.js';

/** Applies the limits of the queue. */
export function applyQueueLimits({ dispatcher, generations, health }: ModelCore): void {
  dispatcher.limits = dispatchLimits(generations.inForce.options, health.refusesCalls);
}

/** Applies the limits of the queue and of the existing workers. */
export function applyLimits(model: ModelCore): void {
  const { crew, dispatcher, generations, resources } = model;
  applyQueueLimits(model);
  const { spec, options } = generations.inForce;
  const limits = workerLimits(spec, options, resources.maxOutputBytes);
  for (const worker of crew.workers) worker.limits = limits;
  dispatcher.pump();
}

/** Applies the description of the app in force; waiting calls of routes that it lacks fail. */
export function applyApp(model: ModelCore): void {
  const { dispatcher, generations, health } = model;
  applyQueueLimits(model);
  dispatcher.dropUnfit((call) => fits(call, generations.inForce.routes as Routes));
  health.changes.wake();
}

/** The limits of a queue under these options. `refusesCalls`: nothing can join a batch any more, so none waits for it. */
export function dispatchLimits(options: ModelOptions, refusesCalls: boolean): DispatchLimits {
  return {
    queueSize: options.queueSize,
    queueTimeoutMs: options.queueTimeout,
    batchSize: options.batchSize,
    // A call that waits longer could time out in the queue beside an idle worker.
    maxBatchDelayMs: refusesCalls ? 0 : Math.min(options.maxBatchDelay, options.queueTimeout / 2),
  };
}

/** Whether an app with these routes can answer the call. */
function fits({ message, conversation }: Call, routes: Routes): boolean {
  const route = routes.get(message.route);
  return route !== undefined && (route.kind === 'websocket') === (conversation !== null);
}
