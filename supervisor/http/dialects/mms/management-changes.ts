/** Registers, scales and unregisters models, with the parameters and messages of Multi Model Server. */
import { ServeError } from '../../../../protocol/errors.js';
import type { FullModelRef, ModelRef, Outcome, WorkerBounds } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import { MANAGEMENT_NAMES, SHORTEST_START_MS, type OptionSource } from '../../../options/resolve.js';
import { isStartFailure } from '../../../models/outcome.js';
import { abortedOnDisconnect } from '../../socket/request-facts.js';
import { noteModel } from '../../call/find-model.js';
import { writeMmsJson } from './answer-style.js';
import { bodyOrQueryParams, queryParams, withMmsErrors, type Params } from './request.js';

const MOST_WORKERS = 1024;
const MOST_STANDBY = 64;
const MOST_S = 2 ** 21; // the longest timer, as seconds
const MOST_MS = 2 ** 31 - 1;

const STARTED = 'Processing worker updates...';
const SCALED = 'Workers scaled';
const RESTARTED = 'Worker restarted';
const UNFINISHED = 'Workers scaling in progress...';

/** `POST /models` */
export async function register(ctx: AnswerContext, context: RequestContext): Promise<void> {
  const { modelManagement, models, storedModels } = context.backend;
  const params = await bodyOrQueryParams(context);
  const url = params.text('url');
  if (url === undefined) throw new ServeError('SERVE_BAD_REQUEST', 'Parameter url is required.');
  const asked = params.count('initial_workers', -MOST_MS, MOST_WORKERS);
  const initTimeout = secondsIn(params, 'startup_timeout', 0);
  const ref = await storedModels.register({
    url,
    ...optional('name', params.text('model_name')),
    ...optional('handler', params.text('handler')),
    ...optional('runtime', params.text('runtime')),
    options: sourceOf({
      ...optionsIn(params),
      ...optional('minWorkers', params.count('min_worker', 0, MOST_WORKERS)),
      ...optional('maxWorkers', params.count('max_worker', 1, MOST_WORKERS)),
      ...(initTimeout === undefined ? {} : { initTimeout: Math.max(initTimeout, SHORTEST_START_MS) }),
    }),
    signal: abortedOnDisconnect(context.request, context.response),
  });
  noteModel(context, models, ref);
  const first = asked === undefined ? {} : { min: Math.max(0, asked) };
  const bounds = modelManagement.boundsFor('registration', ref, first);
  if (bounds.min === 0) {
    if (bounds.max > 0) withMmsErrors(ref, () => modelManagement.scale(ref, bounds, MOST_MS));
    writeStatus(ctx, 200, `Model "${ref.name}" registered`);
    return;
  }
  if (params.flag('synchronous', true)) {
    writeOutcome(ctx, await withMmsErrors(ref, () => modelManagement.start(ref, bounds)).settled);
    return;
  }
  withMmsErrors(ref, () => modelManagement.scale(ref, bounds, MOST_MS));
  writeStatus(ctx, 202, STARTED);
}

/** `PUT /models/{model}` and `/models/{model}/{version}` */
export async function scale(ctx: AnswerContext, context: RequestContext, ref: ModelRef): Promise<void> {
  const { modelManagement } = context.backend;
  const params = queryParams(context);
  const options = optionsIn(params);
  const hasOptions = Object.keys(options).length > 0;
  const asked = boundsIn(params, hasOptions);
  const drainMs = drainMsIn(params);
  const ends = withMmsErrors(ref, () => {
    const changed = hasOptions ? [modelManagement.change(ref, sourceOf(options))] : [];
    if (asked === null) return changed;
    const bounds = checked(modelManagement.boundsFor('change', ref, asked));
    return [...changed, modelManagement.scale(ref, bounds, drainMs)];
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

/** `PUT /models/{model}/{version}/workers/{worker}/restart` */
export async function restartWorker(
  ctx: AnswerContext,
  context: RequestContext,
  ref: ModelRef,
  worker: string,
): Promise<void> {
  const { modelManagement } = context.backend;
  const index = /^\d{1,4}$/.test(worker) ? Number(worker) : -1; // no worker has this number: 404
  const { settled } = withMmsErrors(ref, () => modelManagement.restartWorker(ref, index));
  if (!queryParams(context).flag('synchronous', false)) return writeStatus(ctx, 202, STARTED);
  writeOutcome(ctx, await settled, RESTARTED);
}

/** `DELETE /models/{model}` and `/models/{model}/{version}`; the default of several versions is refused with 403. */
export async function unregister(ctx: AnswerContext, context: RequestContext, ref: ModelRef): Promise<void> {
  const { modelManagement, options } = context.backend;
  const { name } = ref;
  const { settled } = withMmsErrors(ref, () => {
    try {
      return modelManagement.unregister(ref, options.unregisterTimeout);
    } catch (thrown) {
      if (!(thrown instanceof ServeError) || thrown.code !== 'SERVE_MODEL_CONFLICT') throw thrown;
      throw new ServeError(thrown.code, thrown.message, { status: 403 });
    }
  });
  const { result } = await settled;
  if (result === 'unfinished')
    throw new ServeError('SERVE_REQUEST_TIMEOUT', `Timed out while cleaning resources: ${name}`);
  if (result !== 'done')
    throw new ServeError('SERVE_INTERNAL', `Interrupted while cleaning resources: ${name}`);
  writeStatus(ctx, 200, `Model "${name}" unregistered`);
}

/** `PUT /models/{model}/{version}/set-default` */
export function setDefault(ctx: AnswerContext, { backend }: RequestContext, ref: FullModelRef): void {
  withMmsErrors(ref, () => backend.models.setDefault(ref));
  const { name, version } = ref;
  writeStatus(ctx, 200, `Default version successfully updated for model "${name}" to "${version}"`);
}

function writeStatus(ctx: AnswerContext, status: number, text: string): void {
  writeMmsJson(ctx, status, { status: text });
}

/** @throws SERVE_INIT_FAILED, SERVE_SHUTTING_DOWN */
function writeOutcome(ctx: AnswerContext, outcome: Outcome, done = SCALED): void {
  const { result, error } = outcome;
  switch (result) {
    case 'failed':
    case 'partial':
      if (error !== null && !isStartFailure(outcome)) throw error;
      // The reason is in the model's description and in the log.
      throw new ServeError('SERVE_INIT_FAILED', 'Failed to start workers', {
        status: error?.kind === 'out-of-memory' ? 507 : 0,
      });
    case 'done':
      return writeStatus(ctx, 200, done);
    case 'unfinished':
      writeStatus(ctx, 210, UNFINISHED);
      ctx.res.statusMessage = 'Partial Success';
  }
}

/** Returns the bounds that the request names; null if it changes only options. @throws SERVE_BAD_REQUEST */
function boundsIn(params: Params, isForOptions: boolean): Partial<WorkerBounds> | null {
  const [min, max] = [
    params.count('min_worker', 0, MOST_WORKERS),
    params.count('max_worker', 0, MOST_WORKERS),
  ];
  if (min === undefined && max === undefined && isForOptions) return null;
  if (min !== undefined && max !== undefined) checked({ min, max });
  return { ...optional('min', min), ...optional('max', max) };
}

/** @throws SERVE_BAD_REQUEST */
function checked(bounds: WorkerBounds): WorkerBounds {
  if (bounds.max >= bounds.min) return bounds;
  throw new ServeError('SERVE_BAD_REQUEST', 'max_worker cannot be less than min_worker.');
}

/** Returns the time for the calls of workers that are being stopped, in ms: no limit for -1, none for 0. */
function drainMsIn(params: Params): number {
  const seconds = params.number('timeout') ?? -1;
  return seconds < 0 ? MOST_MS : Math.min(seconds * 1000, MOST_MS);
}

/** Values of a model's options; times in ms. */
type ManagedValues = { readonly [Name in keyof typeof MANAGEMENT_NAMES]?: number };

/** Returns the options in the request that can be set at a registration and changed later. @throws SERVE_BAD_REQUEST */
function optionsIn(params: Params): ManagedValues {
  return {
    ...optional('batchSize', params.count('batch_size', 1, 1024)),
    ...optional('maxBatchDelay', params.count('max_batch_delay', 0, MOST_MS)),
    ...optional('runTimeout', secondsIn(params, 'response_timeout', 1)),
    ...optional('idleTimeout', secondsIn(params, 'idle_timeout', 1)),
    ...optional('targetWait', params.count('target_wait', 1, MOST_MS)),
    ...optional('standby', params.count('standby', 0, MOST_STANDBY)),
  };
}

function sourceOf(values: ManagedValues): OptionSource {
  return { values, where: (name) => MANAGEMENT_NAMES[name as keyof ManagedValues], numbersAreMs: true };
}

function secondsIn(params: Params, name: string, least: number): number | undefined {
  const seconds = params.count(name, least, MOST_S);
  return seconds === undefined ? undefined : seconds * 1000;
}

/** Returns an object with this member; empty if the value is undefined. */
function optional<Name extends string, Value>(name: Name, value: Value | undefined): { [K in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [K in Name]?: Value };
}
