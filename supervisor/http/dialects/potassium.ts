/** The Potassium dialect's own paths: status, warm-up and background jobs. Its routes are calls like any other. */
import { isUtf8 } from 'node:buffer';
import Router, { type RouterMiddleware } from '@koa/router';
import { ERRORS, ServeError } from '../../../protocol/errors.js';
import type { KeptJob, KeptResult } from '../../jobs/kept-jobs.js';
import type { Backend } from '../call/backend.js';
import { isJson } from '../call/route-check.js';
import { scanTopLevelFields } from '../call/top-level-fields.js';

const STATUS_PATHS = ['/_k/status', '/__status__'];

export function potassiumRoutes(backend: Backend): Router {
  const router = new Router({ strict: true, sensitive: true });
  router.get(STATUS_PATHS, (ctx) => {
    ctx.body = potassiumStatus(backend);
  });

  // Holds until a worker is ready, however long that takes, for a client that does not ask again.
  const warmUp: RouterMiddleware = async (ctx) => {
    await backend.model.whenReady(closed(ctx.res));
    backend.model.noteIdle();
    ctx.body = { warm: true };
  };
  router.get('/_k/warmup', warmUp);
  router.post('/_k/warmup', warmUp);

  router.get('/_k/jobs/:id', (ctx) => {
    const job = backend.jobs.get(ctx.params['id'] ?? '');
    if (job === null)
      throw new ServeError('SERVE_NOT_FOUND', 'There is no such job, or it is forgotten by now.');
    ctx.type = 'application/json';
    ctx.body = describeJob(job);
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

/** JSON results stand in it as they are, whatever their size; others in base64. */
function describeJob(kept: KeptJob): Buffer {
  const { id, requestId, route, runMs, createdAt, endedAt, error, result } = kept;
  const facts = {
    id,
    state: kept.state,
    requestId,
    route,
    createdAt: createdAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
    runMs: Math.round(runMs * 1000) / 1000,
    error: error === null ? null : describeError(error),
  };
  if (result === null) return Buffer.from(JSON.stringify({ ...facts, result: null }));
  const { status, contentType } = result.head;
  const [encoding, bytes] = encodeResult(result);
  const before = JSON.stringify({ ...facts, status, contentType, encoding }).slice(0, -1);
  return Buffer.concat([Buffer.from(`${before},"result":`), bytes, Buffer.from('}')]);
}

function describeError({ code, message }: ServeError): object {
  return { code, message, source: ERRORS[code].source };
}

/** What an app calls JSON need not be: one result that is not would spoil the whole reply. */
function encodeResult({ head, body }: KeptResult): ['json' | 'base64', Buffer] {
  if (body === null) return ['json', Buffer.from('null')];
  if (isJson(head.contentType) && isUtf8(body) && scanTopLevelFields(body, []).is !== 'malformed')
    return ['json', body];
  return ['base64', Buffer.from(JSON.stringify(body.toString('base64')))];
}

function closed(response: { once(event: 'close', listener: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => response.once('close', resolve));
}
