/** Registers models, gives them workers, and takes them away, in the words of Multi Model Server. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Accepted, FullModelRef, ModelRef, Outcome } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import { isStartFailure, type ManagedOptions } from '../../request/model-management.js';
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
export async function register(ctx: AnswerContext, context: RequestContext): Promise<void> {
  const { modelManagement, options } = context.backend;
  const params = await bodyOrQueryParams(context);
  const url = params.text('url');
  if (url === undefined) throw new ServeError('SERVE_BAD_REQUEST', 'Parameter url is required.');
  const asked = params.count('initial_workers', -MOST_MS, MOST_WORKERS);
  const workers = Math.max(0, asked ?? options.defaultWorkers ?? 0);
  const initTimeoutMs = secondsIn(params, 'startup_timeout', 0);
  const ref = await modelManagement.register({
    url,
    ...given('name', params.text('model_name')),
    ...given('handler', params.text('handler')),
    ...given('runtime', params.text('runtime')),
    ...optionsIn(params),
    ...given('initTimeoutMs', initTimeoutMs),
    signal: leaving(context),
  });
  noteModel(context, context.backend.models, ref);
  if (workers === 0) {
    writeStatus(ctx, 200, `Model "${ref.name}" registered`);
    return;
  }
  if (params.flag('synchronous', true)) {
    writeOutcome(ctx, await saying(ref, () => modelManagement.start(ref, workers)).settled);
    return;
  }
  saying(ref, () => modelManagement.scale(ref, { min: workers, max: workers }, MOST_MS));
  writeStatus(ctx, 202, STARTED);
}

/** Aborted when the client has left without an answer. */
function leaving({ request, response }: RequestContext): AbortSignal {
  const left = new AbortController();
  onceClosed(request, response, () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
}

/** `PUT /models/{model}` and `/models/{model}/{version}` */
export async function scale(ctx: AnswerContext, context: RequestContext, ref: ModelRef): Promise<void> {
  const { modelManagement } = context.backend;
  const params = queryParams(context);
  const options = optionsIn(params);
  const bounds = boundsIn(params, Object.keys(options).length > 0);
  const drainMs = drainMsIn(params);
  const ends = saying(ref, () => {
    const changed = Object.keys(options).length > 0 ? [modelManagement.change(ref, options)] : [];
    return [...changed, ...(bounds === null ? [] : [modelManagement.scale(ref, bounds, drainMs)])];
  });
  if (!params.flag('synchronous', false)) {
    writeStatus(ctx, 202, STARTED);
    return;
  }
  const settled = await Promise.all(ends.map((end) => end.settled));
  const order = ['failed', 'partial', 'unfinished', 'done'];
  settled.sort((a, b) => order.indexOf(a.result) - order.indexOf(b.result));
  writeOutcome(ctx, settled[0] as Outcome);
}

/** `DELETE /models/{model}` and `/models/{model}/{version}` */
export async function unregister(ctx: AnswerContext, context: RequestContext, ref: ModelRef): Promise<void> {
  const { modelManagement, options } = context.backend;
  const { name } = ref;
  const { result } = await accepted(() => modelManagement.unregister(ref, options.unregisterTimeout), ref)
    .settled;
  if (result === 'unfinished')
    throw new ServeError('SERVE_REQUEST_TIMEOUT', `Timed out while cleaning resources: ${name}`);
  if (result !== 'done')
    throw new ServeError('SERVE_INTERNAL', `Interrupted while cleaning resources: ${name}`);
  writeStatus(ctx, 200, `Model "${name}" unregistered`);
}

/** `PUT /models/{model}/{version}/set-default` */
export function setDefault(ctx: AnswerContext, { backend }: RequestContext, ref: FullModelRef): void {
  saying(ref, () => backend.modelManagement.setDefault(ref));
  const { name, version } = ref;
  writeStatus(ctx, 200, `Default version successfully updated for model "${name}" to "${version}"`);
}

function writeStatus(ctx: AnswerContext, status: number, text: string): void {
  writeMmsJson(ctx, status, { status: text });
}

/** @throws SERVE_INIT_FAILED, SERVE_SHUTTING_DOWN */
function writeOutcome(ctx: AnswerContext, outcome: Outcome): void {
  const { result, error } = outcome;
  switch (result) {
    case 'failed':
    case 'partial':
      if (error !== null && !isStartFailure(outcome)) throw error;
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
function optionsIn(params: Params): ManagedOptions {
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

/** Asks for a change; that there is no such model is said in the words of Multi Model Server. */
function saying<T>(ref: ModelRef, change: () => T): T {
  try {
    return change();
  } catch (thrown) {
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}

/** The same for an unregistration: the default of several versions is refused with 403. */
function accepted(unregister: () => Accepted, ref: ModelRef): Accepted {
  try {
    return unregister();
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    if (thrown.code !== 'SERVE_MODEL_CONFLICT') throw notFound(thrown, ref);
    throw new ServeError(thrown.code, thrown.message, { status: 403 });
  }
}
