/** Registers models, gives them workers, and takes them away, in the words of Multi Model Server. */
import { ServeError, type ErrorCode } from '../../../../protocol/errors.js';
import type { FullModelRef, ModelRef } from '../../../models/models.js';
import type { Ask } from '../../request/request-context.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import type { AdminOptions, ModelsAdmin, ScaleEnd } from '../../request/model-management.js';
import { onceClosed } from '../../socket/request-facts.js';
import { noteModel, notFound } from './find-model.js';
import { writeMmsJson } from './json.js';
import { bodyOrQueryParams, queryParams, type Params } from './params.js';

const MOST_WORKERS = 1024;
const MOST_S = 2 ** 21; // in ms, what a timer can be set to
const MOST_MS = 2 ** 31 - 1;

const STARTED = 'Processing worker updates...';
const SCALED = 'Workers scaled';
const UNFINISHED = 'Workers scaling in progress...';

/** `POST /models` */
export async function register(ctx: AnswerContext, ask: Ask): Promise<void> {
  const { admin, options } = ask.backend;
  const params = await bodyOrQueryParams(ask);
  const url = params.text('url');
  if (url === undefined) throw new ServeError('SERVE_BAD_REQUEST', 'Parameter url is required.');
  const asked = params.count('initial_workers', -MOST_MS, MOST_WORKERS);
  const workers = Math.max(0, asked ?? options.defaultWorkers ?? 0);
  const initTimeoutMs = secondsIn(params, 'startup_timeout', 0);
  const ref = await admin.register({
    url,
    ...given('name', params.text('model_name')),
    ...given('handler', params.text('handler')),
    ...given('runtime', params.text('runtime')),
    ...optionsIn(params),
    ...given('initTimeoutMs', initTimeoutMs),
    signal: leaving(ask),
  });
  noteModel(ask, ask.backend.models, ref);
  if (workers === 0) {
    writeStatus(ctx, 200, `Model "${ref.name}" registered`);
    return;
  }
  const scaling = saying(ref, () => admin.scale(ref, { min: workers, max: workers }, MOST_MS));
  if (!params.flag('synchronous', true)) {
    writeStatus(ctx, 202, STARTED);
    return;
  }
  const end = await scaling.settled;
  if (cannotStart(end) && scaling.isLastWord()) await takeBack(admin, ref);
  writeEnd(ctx, end);
}

/** Aborted when the client has left without an answer. */
function leaving({ request, response }: Ask): AbortSignal {
  const left = new AbortController();
  onceClosed(request, response, () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
}

/** `PUT /models/{model}` and `/models/{model}/{version}` */
export async function scale(ctx: AnswerContext, ask: Ask, ref: ModelRef): Promise<void> {
  const { admin } = ask.backend;
  const params = queryParams(ask);
  const options = optionsIn(params);
  const bounds = boundsIn(params, Object.keys(options).length > 0);
  const drainMs = drainMsIn(params);
  const ends = saying(ref, () => {
    const changed = Object.keys(options).length > 0 ? [admin.change(ref, options)] : [];
    return [...changed, ...(bounds === null ? [] : [admin.scale(ref, bounds, drainMs)])];
  });
  if (!params.flag('synchronous', false)) {
    writeStatus(ctx, 202, STARTED);
    return;
  }
  const settled = await Promise.all(ends.map((end) => end.settled));
  const order = ['failed', 'unfinished', 'done'];
  settled.sort((a, b) => order.indexOf(a.result) - order.indexOf(b.result));
  writeEnd(ctx, settled[0] as ScaleEnd);
}

/** `DELETE /models/{model}` and `/models/{model}/{version}` */
export async function unregister(ctx: AnswerContext, ask: Ask, ref: ModelRef): Promise<void> {
  const { admin, options } = ask.backend;
  const end = await admin.unregister(ref, options.unregisterTimeout).catch((thrown: unknown) => {
    throw refusedUnregister(thrown, ref);
  });
  const { name } = ref;
  if (end === 'timedOut')
    throw new ServeError('SERVE_REQUEST_TIMEOUT', `Timed out while cleaning resources: ${name}`);
  if (end === 'interrupted')
    throw new ServeError('SERVE_INTERNAL', `Interrupted while cleaning resources: ${name}`);
  writeStatus(ctx, 200, `Model "${name}" unregistered`);
}

/** `PUT /models/{model}/{version}/set-default` */
export function setDefault(ctx: AnswerContext, { backend }: Ask, ref: FullModelRef): void {
  saying(ref, () => backend.admin.setDefault(ref));
  const { name, version } = ref;
  writeStatus(ctx, 200, `Default version successfully updated for model "${name}" to "${version}"`);
}

function writeStatus(ctx: AnswerContext, status: number, text: string): void {
  writeMmsJson(ctx, status, { status: text });
}

/** @throws SERVE_INIT_FAILED, SERVE_SHUTTING_DOWN */
function writeEnd(ctx: AnswerContext, { result, error }: ScaleEnd): void {
  switch (result) {
    case 'failed':
      if (error !== null && OTHER_ENDS.has(error.code)) throw error;
      // The reason is described, and logged.
      throw new ServeError('SERVE_INIT_FAILED', 'Failed to start workers', {
        status: error?.kind === 'out-of-memory' ? 507 : 0,
      });
    case 'done':
      return writeStatus(ctx, 200, SCALED);
    case 'unfinished':
      writeStatus(ctx, 210, UNFINISHED);
      ctx.res.statusMessage = 'Partial Success';
  }
}

/** Why workers have not come, though nothing is wrong with them: a server that ends serves what it has, others have unregistered it. */
const OTHER_ENDS: ReadonlySet<ErrorCode> = new Set(['SERVE_SHUTTING_DOWN', 'SERVE_MODEL_NOT_FOUND']);

function cannotStart({ result, error }: ScaleEnd): boolean {
  return result === 'failed' && (error === null || !OTHER_ENDS.has(error.code));
}

/** What cannot start is not kept. */
async function takeBack(admin: ModelsAdmin, ref: FullModelRef): Promise<void> {
  try {
    await admin.unregister(ref, TAKE_BACK_MS);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
  }
}

/** Its workers end no calls, since it never answered any: they need the time in which a process dies. */
const TAKE_BACK_MS = 5000;

/** Null: other things are asked for, and no number of workers. @throws SERVE_BAD_REQUEST */
function boundsIn(params: Params, isForOptions: boolean): { min: number; max: number } | null {
  const [min, max] = [
    params.count('min_worker', 0, MOST_WORKERS),
    params.count('max_worker', 0, MOST_WORKERS),
  ];
  if (min === undefined && max === undefined && isForOptions) return null;
  const bounds = { min: min ?? 1, max: max ?? min ?? 1 };
  if (bounds.max >= bounds.min) return bounds;
  throw new ServeError('SERVE_BAD_REQUEST', 'max_worker cannot be less than min_worker.');
}

/** How long calls of workers that go may take: -1 as long as they need, 0 none. */
function drainMsIn(params: Params): number {
  const seconds = params.number('timeout') ?? -1;
  return seconds < 0 ? MOST_MS : Math.min(seconds * 1000, MOST_MS);
}

/** @throws SERVE_BAD_REQUEST */
function optionsIn(params: Params): AdminOptions {
  return {
    ...given('batchSize', params.count('batch_size', 1, 1024)),
    ...given('maxBatchDelayMs', params.count('max_batch_delay', 0, MOST_MS)),
    ...given('runTimeoutMs', secondsIn(params, 'response_timeout', 1)),
  };
}

function secondsIn(params: Params, name: string, least: number): number | undefined {
  const seconds = params.count(name, least, MOST_S);
  return seconds === undefined ? undefined : seconds * 1000;
}

/** A member that is left out if its value is undefined. */
function given<Name extends string, Value>(name: Name, value: Value | undefined): { [K in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [K in Name]?: Value };
}

/** Says in the words of Multi Model Server that there is no such model. */
function saying<T>(ref: ModelRef, ask: () => T): T {
  try {
    return ask();
  } catch (thrown) {
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}

function refusedUnregister(thrown: unknown, ref: ModelRef): unknown {
  if (!(thrown instanceof ServeError)) return thrown;
  if (thrown.code !== 'SERVE_MODEL_CONFLICT') return notFound(thrown, ref);
  return new ServeError(thrown.code, thrown.message, { status: 403 });
}
