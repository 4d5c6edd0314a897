/**
 * Potassium's own paths: status, warm-up and background jobs, all about the default model. An app's routes are called
 * in the house dialect.
 */
import { Readable } from 'node:stream';
import { ServeError } from '../../../../protocol/errors.js';
import { JOBS_PATH, POTASSIUM_PREFIX, POTASSIUM_STATUS_PATHS } from '../../../../protocol/reserved-paths.js';
import { BANANA_CLIENTS } from '../../access/banana-clients.js';
import type { Backend } from '../../request/backend.js';
import { defaultModel } from '../../call/default-model.js';
import { houseFailure } from '../../answer/house-error.js';
import type { WriteAnswer } from '../../answer/koa-answers.js';
import { PathTable } from '../../call/path-table.js';
import type { Dialect } from '../dialect.js';
import { HOUSE_ERROR } from '../../openapi/house-error-body.js';
import { describePages } from './describe-pages.js';
import { describeJob } from './job-page.js';

const WARM_UP_PATH = `${POTASSIUM_PREFIX}/warmup`;
const WARM_UP_METHODS = 'GET, HEAD, POST';
const PAGE_METHODS = 'GET, HEAD';

type Write = (
  ctx: Parameters<WriteAnswer>[0],
  backend: Backend,
  params: Readonly<Record<string, string>>,
) => void | Promise<void>;

/** Methods other than `GET` and `HEAD` get "not found" at a page. */
const PAGES = new PathTable<Write>([
  ...POTASSIUM_STATUS_PATHS.map((path) => [path, writeStatus] as const),
  [`${JOBS_PATH}/{id}`, writeJob],
]);

export const potassium: Dialect = {
  name: 'potassium',
  ...BANANA_CLIENTS,
  paths: new Map([
    [WARM_UP_PATH, WARM_UP_METHODS],
    ...PAGES.paths.map((path) => [path, PAGE_METHODS] as const),
  ]),

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
    const page = isRead ? PAGES.find(path) : null;
    if (page === null) return null;
    const write: WriteAnswer = (ctx, { backend }) => page.value(ctx, backend, page.params);
    return { auth: 'call', counts: false, methods: PAGE_METHODS, act: { write } };
  },

  fail: houseFailure,
  errorBody: HOUSE_ERROR,
  describe: describePages,
};

/** Waits until a worker is ready, however long that takes, because the client does not ask again. */
const warmUp: WriteAnswer = async (ctx, { backend }) => {
  const model = defaultModel(backend.models);
  await model.whenReady(closed(ctx.res));
  model.noteIdle();
  ctx.body = { warm: true };
};

async function writeJob(...[ctx, { jobs }, { id = '' }]: Parameters<Write>): Promise<void> {
  const record = await jobs.get(id);
  if (record === null)
    throw new ServeError('SERVE_NOT_FOUND', 'There is no such job, or its result is no longer kept.');
  ctx.type = 'application/json';
  const { pieces, bytes } = await describeJob(record, await jobs.readResult(id));
  // In pieces as the client takes them: thousands may request one result of many megabytes.
  ctx.body = Readable.from(pieces, { objectMode: false });
  ctx.length = bytes;
}

/**
 * Writes the status: first the four keys that the platform's balancer reads, then more for people. Times in whole ms.
 */
function writeStatus(...[ctx, { models, posts, replies }]: Parameters<Write>): void {
  const model = defaultModel(models);
  const { dispatcher } = model;
  // Calls that were given up hold their worker until they end there.
  const inProgress = dispatcher.queued + dispatcher.arriving + model.heldCalls;
  const available = model.readyWorkers === model.slots.length && inProgress < model.slots.length;
  const nowMs = performance.now();
  const beganAtMs = model.findOldestBegan();
  const answered = [...replies.values()].reduce((sum, count) => sum + count, 0);
  const completed = replies.get('ok') ?? 0;
  ctx.body = {
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
