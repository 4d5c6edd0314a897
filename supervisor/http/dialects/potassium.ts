/** Answers Potassium's own paths: status, warm-up and background jobs. An app's routes are calls like any other. */
import { Readable } from 'node:stream';
import Router, { type RouterMiddleware } from '@koa/router';
import { ServeError } from '../../../protocol/errors.js';
import { POTASSIUM_PREFIX, POTASSIUM_STATUS_PATHS } from '../../../protocol/reserved-paths.js';
import type { Backend } from '../call/backend.js';
import { describeJob } from './job-page.js';
import { WARM_UP_PATH } from './own-paths.js';

export function potassiumRoutes(backend: Backend): Router {
  const router = new Router({ strict: true, sensitive: true });
  router.get([...POTASSIUM_STATUS_PATHS], (ctx) => {
    ctx.body = potassiumStatus(backend);
  });

  // Holds until a worker is ready, however long that takes, for a client that does not ask again.
  const warmUp: RouterMiddleware = async (ctx) => {
    await backend.model.whenReady(closed(ctx.res));
    backend.model.noteIdle();
    ctx.body = { warm: true };
  };
  router.get(WARM_UP_PATH, warmUp);
  router.post(WARM_UP_PATH, warmUp);

  router.get(`${POTASSIUM_PREFIX}/jobs/:id`, async (ctx) => {
    const job = backend.jobs.get(ctx.captures?.[0] ?? '');
    if (job === null)
      throw new ServeError('SERVE_NOT_FOUND', 'There is no such job, or it is forgotten by now.');
    ctx.type = 'application/json';
    const { pieces, bytes } = await describeJob(job);
    // In pieces as the client takes them: thousands may ask for one result of many megabytes.
    ctx.body = Readable.from(pieces, { objectMode: false });
    ctx.length = bytes;
  });
  return router;
}

/** The four keys that the platform's balancer reads come first; the rest is for people. Times in whole ms. */
function potassiumStatus({ model, posts, replies }: Backend): object {
  const { dispatcher } = model;
  // Calls that nobody waits for any more hold their worker until they end there.
  const inProgress = dispatcher.queued + dispatcher.arriving + model.heldCalls;
  const available = model.readyWorkers === model.slots.length && inProgress < model.slots.length;
  const nowMs = performance.now();
  const beganAtMs = model.oldestBeganAtMs;
  const answered = [...replies.values()].reduce((sum, count) => sum + count, 0);
  const completed = replies.get('ok') ?? 0;
  return {
    gpu_available: available,
    idle_time: available && inProgress === 0 ? Math.round(nowMs - model.idleSinceMs) : 0,
    inference_time: beganAtMs === null ? 0 : Math.round(nowMs - beganAtMs),
    sequence_number: posts.count,
    workers: model.slots.length,
    workers_ready: model.readyWorkers,
    queue_length: dispatcher.queued,
    in_flight: dispatcher.inFlight,
    completed,
    failed: answered - completed,
    restarts: model.slots.reduce((sum, { restarts }) => sum + restarts, 0),
    uptime: Math.round(process.uptime() * 1000),
  };
}

function closed(response: { once(event: 'close', listener: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => response.once('close', resolve));
}
