/** Waits for an app's routes when a call arrives before any worker has loaded the app. */
import { ServeError } from '../../protocol/errors.js';
import type { Routes } from './app-description.js';
import type { Model } from './model.js';

/**
 * Resolves with the routes once a worker has loaded the app. Waits at most as long as a call may wait in the queue, or
 * `limitMs` if that is shorter: the caller's own limit, from `acceptedAtMs` on (null: none). `onGone` calls back when the
 * caller has left. The call has its place in the queue already.
 * @throws SERVE_OVERLOADED if no worker can be ready in time, SERVE_CANCELLED if the caller leaves, SERVE_QUEUE_TIMEOUT, SERVE_DEADLINE, SERVE_NOT_READY, SERVE_SHUTTING_DOWN
 */
export async function routesInTime(
  model: Model,
  { acceptedAtMs, limitMs }: { readonly acceptedAtMs: number; readonly limitMs: number | null },
  onGone: (callback: () => void) => void,
): Promise<Routes> {
  if (limitMs !== null) model.dispatcher.checkDeadline(acceptedAtMs + limitMs);
  const { queueTimeout } = model.options;
  const late: 'SERVE_DEADLINE' | 'SERVE_QUEUE_TIMEOUT' =
    limitMs !== null && limitMs < queueTimeout ? 'SERVE_DEADLINE' : 'SERVE_QUEUE_TIMEOUT';
  const waitMs = Math.min(limitMs ?? Infinity, queueTimeout);
  let timer: NodeJS.Timeout | undefined;
  let giveUp: 'SERVE_CANCELLED' | typeof late = 'SERVE_CANCELLED';
  const givenUp = new Promise<void>((resolve) => {
    onGone(resolve);
    timer = setTimeout(() => {
      giveUp = late;
      resolve();
    }, waitMs);
  });
  try {
    const routes = await model.whenLoaded(givenUp, performance.now() + waitMs);
    if (routes === null) throw new ServeError(giveUp);
    return routes;
  } finally {
    clearTimeout(timer);
  }
}
