/** Waits for the app when a call, or a page about the app, arrives before any worker has loaded it. */
import { ServeError } from '../../../protocol/errors.js';
import type { LoadedInfo } from '../../../protocol/wire/messages.js';
import type { Routes } from '../../models/app-description.js';
import type { Model } from '../../models/model.js';
import { routesInTime } from '../../models/routes-in-time.js';
import { onceClosed } from '../socket/request-facts.js';
import type { RequestContext } from '../request/request-context.js';
import { timeLimitOf } from './client-wishes.js';

/** Waits as `routesInTime` does, until the client leaves. `limitMs`: the client's own limit. */
export function awaitRoutes(
  { request, response, acceptedAtMs }: RequestContext,
  model: Model,
  limitMs: number | null,
): Promise<Routes> {
  return routesInTime(model, { acceptedAtMs, limitMs }, (gone) => onceClosed(request, response, gone));
}

/**
 * Resolves with the app's description of itself, for a page that shows it. Waits for it with the bounds of a call: a place
 * in the model's queue, the queue's timeout, the client's own limit. It starts no worker of an idle model. The page must need a key as a call does, because it
 * takes the place of one.
 * @throws the errors of `awaitRoutes` and those of an admission, as for a call
 */
export async function awaitInfo(context: RequestContext, model: Model): Promise<LoadedInfo> {
  while (model.info === null) {
    if (model.health.takesCalls && model.crew.wanted === 0) throw neverLoaded();
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

/** The error of a page about an idle app that no worker has loaded: pages start none. */
function neverLoaded(): ServeError {
  const message = 'This model is idle, and was not loaded yet: a call or a warm-up starts a worker.';
  return new ServeError('SERVE_NOT_READY', message, { retryAfterS: IDLE_RETRY_S });
}

const IDLE_RETRY_S = 30;
