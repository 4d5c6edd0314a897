/**
 * Potassium's own paths: status and warm-up, about the default model, and jobs (`job-paths.ts`). An app's routes are called
 * in the house dialect.
 */
import { JOBS_PATH, POTASSIUM_STATUS_PATHS, WARM_UP_PATH } from '../../../../protocol/reserved-paths.js';
import { BANANA_CLIENTS } from '../../access/client-headers.js';
import { houseFailure } from '../../answer/house-error.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import { defaultModel } from '../../call/find-model.js';
import { pathTable } from '../../call/path-table.js';
import { HOUSE_ERROR } from '../../openapi/errors.js';
import { describesClientsOf, operationsOf } from '../../openapi/operation.js';
import type { RequestContext } from '../../request/request-context.js';
import { wrongMethod, type Dialect } from '../dialect.js';
import { writeJob, writeJobs, writeResult } from './job-paths.js';
import paths from './paths.json' with { type: 'json' };

const READ = 'GET, HEAD';
const OPERATIONS = operationsOf(paths);

interface Page {
  /** As an `Allow` header lists them. */
  readonly methods: string;
  /** `id`: that of the job in the path; empty without one. */
  readonly write: (ctx: AnswerContext, context: RequestContext, id: string) => void | Promise<void>;
}

const PAGES: Readonly<Record<string, Page>> = {
  [WARM_UP_PATH]: { methods: `${READ}, POST`, write: warmUp },
  ...Object.fromEntries(POTASSIUM_STATUS_PATHS.map((path) => [path, { methods: READ, write: writeStatus }])),
  [JOBS_PATH]: { methods: READ, write: writeJobs },
  [`${JOBS_PATH}/{id}`]: { methods: `${READ}, DELETE`, write: writeJob },
  [`${JOBS_PATH}/{id}/result`]: { methods: READ, write: writeResult },
};

const findPage = pathTable(PAGES);

export const potassium: Dialect = {
  name: 'potassium',
  ...BANANA_CLIENTS,
  paths: new Map(Object.entries(PAGES).map(([path, { methods }]) => [path, methods])),

  /** Methods that a page does not take get "not found" there, but for the warm-up. */
  claim(context) {
    const found = findPage(context.path);
    if (found === null) return null;
    const { method = '' } = context.request;
    const { methods, write } = found.value;
    const isWarmUp = write === warmUp;
    const common = { auth: 'call', counts: isWarmUp && method === 'POST', methods } as const;
    if (methods.split(', ').includes(method))
      return { ...common, act: { write: (ctx) => write(ctx, context, found.params['id'] ?? '') } };
    return isWarmUp ? wrongMethod(context, methods) : null;
  },

  fail: houseFailure,
  errorBody: HOUSE_ERROR,

  /** Every app may have jobs; the other pages are about the default model. */
  describe: (server) => {
    const hasAll = server.models.default !== null && describesClientsOf(server, 'potassium');
    return OPERATIONS.filter(({ path }) => hasAll || path.startsWith(JOBS_PATH));
  },
};

/** Waits until a worker is ready, however long that takes, because the client does not ask again. */
async function warmUp(ctx: AnswerContext, { backend }: RequestContext): Promise<void> {
  const model = defaultModel(backend.models);
  await model.warmUp(new Promise((resolve) => ctx.res.once('close', resolve)));
  ctx.body = { warm: true };
}

/**
 * Writes the status: first the four keys that the platform's balancer reads, then more for people. Times in whole ms.
 */
function writeStatus(ctx: AnswerContext, { backend }: RequestContext): void {
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
