/**
 * Potassium's own paths: status and warm-up, about the default model, and jobs (`job-paths.ts`). An app's routes are called
 * in the house dialect.
 */
import { ServeError } from '../../../../protocol/errors.js';
import { JOBS_PATH, POTASSIUM_PREFIX, POTASSIUM_STATUS_PATHS } from '../../../../protocol/reserved-paths.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import { defaultModel } from '../../call/find-model.js';
import { houseFailure } from '../../answer/house-error.js';
import type { WriteAnswer } from '../../answer/koa-answers.js';
import type { Dialect, Operation } from '../dialect.js';
import { HOUSE_ERROR } from '../../openapi/errors.js';
import { describesClientsOf, operationsOf } from '../../openapi/operation.js';
import { JOB_PATHS, type JobPath } from './job-paths.js';
import paths from './paths.json' with { type: 'json' };

const WARM_UP_PATH = `${POTASSIUM_PREFIX}/warmup`;
const WARM_UP_METHODS = 'GET, HEAD, POST';
const PAGE_METHODS = 'GET, HEAD';
const OPERATIONS = operationsOf(paths);

export const potassium: Dialect = {
  name: 'potassium',
  ...BANANA_CLIENTS,
  paths: new Map([
    [WARM_UP_PATH, WARM_UP_METHODS],
    ...POTASSIUM_STATUS_PATHS.map((path) => [path, PAGE_METHODS] as const),
    ...JOB_PATHS.paths.map((path) => [path, JOB_PATHS.find(path)?.value.methods ?? ''] as const),
  ]),

  /** Methods that a page does not take get "not found" there. */
  claim({ request: { method }, path }) {
    const isRead = method === 'GET' || method === 'HEAD';
    if (path === WARM_UP_PATH) {
      const counts = method === 'POST';
      if (isRead || counts) return { auth: 'call', counts, methods: WARM_UP_METHODS, act: { write: warmUp } };
      const refuse = new ServeError(
        'SERVE_METHOD_NOT_ALLOWED',
        `${path} takes ${WARM_UP_METHODS}, not ${method}.`,
      );
      return { auth: 'call', counts, methods: WARM_UP_METHODS, act: { refuse } };
    }
    if (POTASSIUM_STATUS_PATHS.includes(path))
      return isRead
        ? { auth: 'call', counts: false, methods: PAGE_METHODS, act: { write: writeStatus } }
        : null;
    const job = JOB_PATHS.find(path);
    return job === null ? null : jobOperation(method, job.value, job.params['id'] ?? '');
  },

  fail: houseFailure,
  errorBody: HOUSE_ERROR,

  /** Every app may have jobs; the other pages are about the default model. */
  describe: (server) => {
    const hasAll = server.models.default !== null && describesClientsOf(server, 'potassium');
    return OPERATIONS.filter(({ path }) => hasAll || path.startsWith(JOBS_PATH));
  },
};

function jobOperation(
  method: string | undefined,
  { methods, read, remove }: JobPath,
  id: string,
): Operation | null {
  const isRead = method === 'GET' || method === 'HEAD';
  const act = isRead ? read : method === 'DELETE' ? remove : null;
  if (act === null) return null;
  return { auth: 'call', counts: false, methods, act: { write: (ctx, context) => act(ctx, context, id) } };
}

/** Waits until a worker is ready, however long that takes, because the client does not ask again. */
const warmUp: WriteAnswer = async (ctx, { backend }) => {
  const model = defaultModel(backend.models);
  await model.warmUp(closed(ctx.res));
  ctx.body = { warm: true };
};

/**
 * Writes the status: first the four keys that the platform's balancer reads, then more for people. Times in whole ms.
 */
function writeStatus(...[ctx, { backend }]: Parameters<WriteAnswer>): void {
  const { models, posts, replies } = backend;
  const model = defaultModel(models);
  const { crew, dispatcher, health } = model;
  // Calls that were given up hold their worker until they end there.
  const inProgress = dispatcher.queued + dispatcher.arriving + crew.heldCalls;
  const isIdle = health.state === 'idle' && inProgress === 0; // the next call starts a worker
  const workers = crew.all.length - crew.standbys.length;
  const available = isIdle || (crew.ready.length === workers && inProgress < workers);
  const nowMs = performance.now();
  const beganAtMs = crew.findOldestBegan();
  const answered = [...replies.values()].reduce((sum, count) => sum + count, 0);
  const completed = replies.get('ok') ?? 0;
  ctx.body = {
    gpu_available: available,
    idle_time: available && inProgress === 0 ? Math.round(nowMs - crew.idleSinceMs) : 0,
    inference_time: beganAtMs === null ? 0 : Math.round(nowMs - beganAtMs),
    sequence_number: posts.count,
    workers,
    workers_ready: crew.ready.length,
    queue_length: dispatcher.queued,
    in_flight: dispatcher.inFlight,
    completed,
    failed: answered - completed,
    restarts: crew.all.reduce((sum, { restarts }) => sum + restarts, 0),
    uptime: Math.round(process.uptime() * 1000),
  };
}

function closed(response: { once(event: 'close', listener: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => response.once('close', resolve));
}
