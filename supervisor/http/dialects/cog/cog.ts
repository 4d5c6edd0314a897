/**
 * The HTTP API of Cog, which Replicate's clients speak too: the default model makes predictions (`create.ts`), those that are
 * jobs have a page (`prediction.ts`). `/predictions/{x}` is Multi Model Server's too: `PUT` is Cog's, `GET` too if there is
 * such a prediction, and any other method calls the model x.
 */
import { ServeError, type Issue } from '../../../../protocol/errors.js';
import type { JobRecord } from '../../../jobs/job-record.js';
import type { Model } from '../../../models/model.js';
import { exposedDetail, headersOfStatus, statusOf } from '../../answer/house-error.js';
import { sendInTurns, type AnswerContext, type WriteAnswer } from '../../answer/koa-answers.js';
import { modelNames } from '../../call/find-model.js';
import { pathTable } from '../../call/path-table.js';
import { SENT_SLICE_BYTES, slicesOf } from '../../json/slices.js';
import { CALL_FAILURES } from '../../openapi/errors.js';
import { operationsOf } from '../../openapi/operation.js';
import { objectOf } from '../../openapi/schemas.js';
import type { RequestContext } from '../../request/request-context.js';
import { callByPost, type Dialect, type Failure } from '../dialect.js';
import { createPlan, PREDICTIONS, readPrediction } from './create.js';
import file from './paths.json' with { type: 'json' };
import { jobIdOf } from './prediction.js';

const ONE = `${PREDICTIONS}/{id}`;
const CANCEL = `${ONE}/cancel`;
const HEALTH = '/health-check';
const PATHS = { [PREDICTIONS]: 'POST', [ONE]: 'GET, PUT', [CANCEL]: 'POST', [HEALTH]: 'GET, HEAD' };

/** The errors of calls that may have run: these are failed predictions. */
const OF_PREDICTIONS: ReadonlySet<string> = new Set([
  'SERVE_INFERENCE_FAILED',
  'SERVE_INFERENCE_TIMEOUT',
  'SERVE_HTTP_ERROR',
  'SERVE_OUTPUT_INVALID',
  'SERVE_OUTPUT_TOO_LARGE',
  'SERVE_WORKER_LOST',
]);

const REFUSALS = CALL_FAILURES.filter(({ code }) => !OF_PREDICTIONS.has(code));

const OPERATIONS = operationsOf(file).map((operation) =>
  operation.path.endsWith('}') || operation.path === PREDICTIONS
    ? { ...operation, failures: REFUSALS }
    : operation,
);

const find = pathTable(PATHS);

export const cog: Dialect = {
  name: 'cog',
  paths: new Map(Object.entries(PATHS)),
  claim(context, models) {
    const { path, request, isWebSocket } = context;
    if (path === PREDICTIONS) return callByPost(context, () => createPlan(context, models, null));
    const found = isWebSocket ? null : find(path);
    const { method = '' } = request;
    if (found === null || !found.value.split(', ').includes(method)) return null;
    const { id } = found.params;
    const common = { auth: 'call', counts: method !== 'GET', methods: found.value } as const;
    if (id === undefined) return { ...common, auth: 'none', counts: false, act: { write: writeHealth } };
    if (method === 'PUT') return { ...common, act: createPlan(context, models, id) };
    return {
      ...common,
      act: method === 'GET' ? { find: () => findPage(context, id) } : { write: cancelBy(id) },
    };
  },
  fail: failure,
  errorBody: { name: 'CogError', schema: objectOf({ detail: {} }) },
  callPaths: ({ isMain, isDefault, isDefaultVersion, route }) =>
    isMain && isDefault && isDefaultVersion && route.kind !== 'websocket' ? [{ path: PREDICTIONS }] : [],
  /** No app is written for its clients alone. */
  describe: ({ options, models }) => (options.openapiAll && models.default !== null ? OPERATIONS : []),
};

/** Null if there is no such prediction. While the store of jobs is away, the calls of models go on. */
async function findPage(context: RequestContext, id: string): Promise<WriteAnswer | null> {
  const { jobs, models } = context.backend;
  let record: JobRecord | null;
  try {
    record = await jobs.get(jobIdOf(id));
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    return modelNames(models).includes(id)
      ? null
      : () => {
          throw thrown;
        };
  }
  return record && ((ctx) => writePage(ctx, context, record));
}

async function writePage(ctx: AnswerContext, context: RequestContext, record: JobRecord): Promise<void> {
  const pieces = await readPrediction(context, record, false);
  ctx.type = 'application/json';
  sendInTurns(ctx, {
    pieces: pieces.flatMap((piece) => [...slicesOf(piece, SENT_SLICE_BYTES)]),
    bytes: pieces.reduce((sum, { length }) => sum + length, 0),
  });
}

/** One that runs is told to end: its outcome decides. One that has ended stays as it is. */
function cancelBy(id: string): WriteAnswer {
  return async (ctx, context) => {
    const { jobs } = context.backend;
    const before = await jobs.cancel(jobIdOf(id));
    if (before === null)
      throw new ServeError('SERVE_NOT_FOUND', 'There is no such prediction, or it is no longer kept.');
    await writePage(ctx, context, (await jobs.get(before.id)) ?? before);
  };
}

/** Always 200: the word decides. */
const writeHealth: WriteAnswer = (ctx, { backend }) => {
  const model = backend.models.default;
  ctx.body = { status: model === null || backend.end.isNear ? 'UNHEALTHY' : healthOf(model) };
};

function healthOf({ health, dispatcher, crew, info }: Model): string {
  const hasFailed = health.standstill !== null;
  switch (health.state) {
    case 'ready': {
      const inProgress = dispatcher.queued + dispatcher.arriving + crew.heldCalls;
      return inProgress < crew.ready.length * (info?.concurrency ?? 1) ? 'READY' : 'BUSY';
    }
    case 'idle':
      return 'READY'; // the next call starts a worker
    case 'draining':
    case 'unloaded':
      return 'UNHEALTHY';
    default:
      if (!hasFailed) return 'STARTING';
      return health.hasServed ? 'DEFUNCT' : 'SETUP_FAILED';
  }
}

/** A prediction that fails is an answer, of status 200. Wrong bodies and inputs are listed as FastAPI does. */
function failure(error: ServeError, _requestId: string, context: RequestContext | null): Failure {
  const { code } = error;
  const detail = exposedDetail(error, context);
  const said = code === 'SERVE_KEY_CONFLICT' ? CONFLICT : error.message;
  const message = detail === '' ? said : `${said}\n${detail}`;
  const isInvalid = code === 'SERVE_BAD_BODY' || (statusOf(error) === 422 && code !== 'SERVE_KEY_CONFLICT');
  const hasFailed = !isInvalid && OF_PREDICTIONS.has(code);
  const body = hasFailed
    ? { status: 'failed', error: message, output: null }
    : { detail: isInvalid ? detailOf(error) : message };
  return {
    status: isInvalid ? 422 : hasFailed ? 200 : statusOf(error),
    headers: { 'Content-Type': 'application/json', ...headersOfStatus(error) },
    body: Buffer.from(JSON.stringify(body)),
  };
}

const CONFLICT = 'This id or Idempotency-Key belongs to a prediction with another body.';

function detailOf({ code, message, issues }: ServeError): object[] {
  const at = code === 'SERVE_BAD_BODY' ? ['body'] : ['body', 'input'];
  const all: readonly Issue[] = issues.length === 0 ? [{ path: [], message }] : issues;
  return all.map((one) => ({ loc: [...at, ...one.path], msg: one.message, type: 'value_error' }));
}
