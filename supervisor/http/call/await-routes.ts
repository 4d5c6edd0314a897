/** Waits for the app's routes when a call arrives before any worker has loaded the app. */
import { ServeError } from '../../../protocol/errors.js';
import type { Routes } from '../../models/app-description.js';
import type { Model } from '../../models/model.js';
import { onceClosed } from '../socket/request-facts.js';
import type { RequestContext } from '../request/request-context.js';

/**
 * Resolves with the routes once a worker has loaded the app. Waits at most as long as a call may wait in the queue, or
 * `limitMs` if that is shorter: the client's own limit. The call has its place in the queue already.
 * @throws SERVE_CANCELLED if the client leaves, SERVE_QUEUE_TIMEOUT, SERVE_DEADLINE, SERVE_NOT_READY, SERVE_SHUTTING_DOWN
 */
export async function awaitRoutes(
  { request, response }: RequestContext,
  model: Model,
  limitMs: number | null,
): Promise<Routes> {
  const { queueTimeout } = model.options;
  const late: 'SERVE_DEADLINE' | 'SERVE_QUEUE_TIMEOUT' =
    limitMs !== null && limitMs < queueTimeout ? 'SERVE_DEADLINE' : 'SERVE_QUEUE_TIMEOUT';
  let timer: NodeJS.Timeout | undefined;
  let giveUp: 'SERVE_CANCELLED' | typeof late = 'SERVE_CANCELLED';
  const givenUp = new Promise<void>((resolve) => {
    onceClosed(request, response, resolve);
    timer = setTimeout(
      () => {
        giveUp = late;
        resolve();
      },
      Math.min(limitMs ?? Infinity, queueTimeout),
    );
  });
  try {
    const routes = await model.whenLoaded(givenUp);
    if (routes === null) throw new ServeError(giveUp);
    return routes;
  } finally {
    clearTimeout(timer);
  }
}
