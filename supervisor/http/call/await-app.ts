/** Waits for the app when a call, or a page about the app, arrives before any worker has loaded it. */
import { ServeError, type ErrorCode } from '../../../protocol/errors.js';
import type { LoadedInfo } from '../../../protocol/wire/messages.js';
import type { Routes } from '../../models/generations.js';
import type { Model } from '../../models/model.js';
import { onceClosed } from '../socket/request-facts.js';
import type { RequestContext } from '../request/request-context.js';
import { timeLimitOf } from './find-route.js';

/**
 * Resolves with the routes once a worker has loaded the app. Waits at most as long as a call may wait in the queue, or
 * `limitMs` if that is shorter: the client's own limit (null: none). The call has its place in the queue already.
 * @throws SERVE_OVERLOADED if no worker can be ready in time, SERVE_CANCELLED if the client leaves, SERVE_QUEUE_TIMEOUT, SERVE_DEADLINE, SERVE_NOT_READY, SERVE_SHUTTING_DOWN
 */
export async function awaitRoutes(
  { request, response, acceptedAtMs }: RequestContext,
  model: Model,
  limitMs: number | null,
): Promise<Routes> {
  if (limitMs !== null) model.dispatcher.checkDeadline(acceptedAtMs + limitMs);
  const { queueTimeout } = model.options;
  const isDeadline = limitMs !== null && limitMs < queueTimeout;
  const waitMs = isDeadline ? limitMs : queueTimeout;
  let timer: NodeJS.Timeout | undefined;
  let giveUp: ErrorCode = 'SERVE_CANCELLED';
  const givenUp = new Promise<void>((resolve) => {
    onceClosed(request, response, resolve);
    timer = setTimeout(() => {
      giveUp = isDeadline ? 'SERVE_DEADLINE' : 'SERVE_QUEUE_TIMEOUT';
      resolve();
    }, waitMs);
  });
  try {
    const routes = await model.whenLoaded(givenUp, performance.now() + waitMs);
    if (routes === null) throw new ServeError(giveUp, undefined, { begun: false });
    return routes;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Resolves with the app's description of itself, for a page that shows it. Waits for it with the bounds of a call: a place
 * in the model's queue, the queue's timeout, the client's own limit. It starts no worker of an idle model. The page must need a key as a call does, because it
 * takes the place of one.
 * @throws the errors of `awaitRoutes` and those of an admission, as for a call
 */
export async function awaitInfo(context: RequestContext, model: Model): Promise<LoadedInfo> {
  while (model.info === null) {
    if (model.health.takesCalls && model.crew.wanted === 0)
      throw new ServeError('SERVE_NOT_READY', NEVER_LOADED, { retryAfterS: IDLE_RETRY_S });
    const limitMs = timeLimitOf(context.request.headers);
    const place = model.dispatcher.admit(0);
    try {
      await awaitRoutes(context, model, limitMs);
    } finally {
      place.release();
    }
  }
  return model.info;
}

/** A page starts no worker of an idle app. */
const NEVER_LOADED = 'This model is idle, and was not loaded yet: a call or a warm-up starts a worker.';
const IDLE_RETRY_S = 30;
