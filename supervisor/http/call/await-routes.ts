/** What a call waits for that came before the app was loaded. */
import { ServeError } from '../../../protocol/errors.js';
import type { Routes } from '../../models/app-description.js';
import type { Model } from '../../models/model.js';
import { onceClosed } from '../socket/request-facts.js';
import type { RequestContext } from '../request/request-context.js';

/**
 * For a call that has a place, and only while no worker has loaded the app: the routes as soon as one has. Waits no
 * longer than a call may wait in the queue, or `limitMs` if the client has set one.
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
