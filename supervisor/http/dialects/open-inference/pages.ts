/** Finds the model that a path names, and writes the pages about it and the server: health, metadata, configuration, statistics. */
import { ServeError } from '../../../../protocol/errors.js';
import type { LoadedInfo, Signature, TensorSpec } from '../../../../protocol/wire/messages.js';
import type { Model } from '../../../models/model.js';
import type { ModelRef } from '../../../models/models.js';
import { VERSION } from '../../../version.js';
import type { AnswerContext, WriteAnswer } from '../../answer/koa-answers.js';
import { awaitInfo } from '../../call/await-app.js';
import { findModel, modelNames } from '../../call/find-model.js';
import type { RequestContext, CallFigures } from '../../request/request-context.js';
import { rewordNotFound } from '../dialect.js';

/** The parameters of a path. */
export type PathParams = Readonly<Record<string, string>>;

function refOf({ model = '', version }: PathParams): ModelRef {
  return version === undefined ? { name: model } : { name: model, version };
}

/** Finds the model and notes it for the log. @throws as `Models.find`, with Triton's words for an unknown model */
export function calledModel(context: RequestContext, params: PathParams): Model {
  const ref = refOf(params);
  try {
    const model = findModel(context, context.backend.models, ref);
    context.model = model;
    return model;
  } catch (thrown) {
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}

/** The versions that the path means: the one that it names, else all of the model. @throws as `calledModel` */
function calledVersions(context: RequestContext, params: PathParams): Model[] {
  const model = calledModel(context, params);
  if (params['version'] !== undefined) return [model];
  return [...context.backend.models.all()].filter(({ spec }) => spec.name === model.spec.name);
}

/** Returns the error with Triton's words, which clients look for, if a model or its version was not found. */
export function notFound(error: ServeError, { name, version = '' }: ModelRef): ServeError {
  const unknown = `Request for unknown model: '${name}'`;
  return rewordNotFound(error, `${unknown} is not found`, `${unknown} version ${version} is not found`);
}

const EXTENSIONS = ['binary_tensor_data', 'model_configuration', 'parameters', 'statistics'];

/** `more`: the extensions of this listener beside those of all. */
export function serverMetadata(more: readonly string[]): WriteAnswer {
  const extensions = [...EXTENSIONS, ...more];
  return (ctx) => {
    ctx.body = { name: 'banana-serve', version: VERSION, extensions };
  };
}

export function live(ctx: AnswerContext): void {
  ctx.body = { live: true };
}

/** Both keys, because the protocol and its servers do not agree on one. */
export function ready(ctx: AnswerContext, { backend }: RequestContext): void {
  const { ready: isReady, state } = backend.readiness();
  writeReadiness(ctx, isReady, { ready: isReady, live: true }, `The server is ${state}.`);
}

/** By the protocol, what is not ready is 4xx; clients look at the status only. `problem`: why it is not. */
function writeReadiness(ctx: AnswerContext, isReady: boolean, body: object, problem: string): void {
  ctx.status = isReady ? 200 : 400;
  ctx.body = isReady ? body : { ...body, error: problem };
}

export function listModels(ctx: AnswerContext, { backend }: RequestContext): void {
  ctx.body = { models: modelNames(backend.models) };
}

/** A model that is being unregistered is not ready. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
export function modelReady(ctx: AnswerContext, { backend }: RequestContext, params: PathParams): void {
  const ref = refOf(params);
  let [ready, state] = [false, 'unloading'];
  try {
    ({ ready, state } = backend.readiness(ref));
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    if (thrown.code !== 'SERVE_NOT_READY') throw notFound(thrown, ref);
  }
  writeReadiness(ctx, ready, { name: ref.name, ready }, `The model ${ref.name} is ${state}.`);
}

/** Waits for the app as a call does. */
export async function modelMetadata(
  ctx: AnswerContext,
  context: RequestContext,
  params: PathParams,
): Promise<void> {
  const model = calledModel(context, params);
  const info = await awaitInfo(context, model);
  const { inputs, outputs } = signatureOf(info);
  const versions = calledVersions(context, params).map(({ spec }) => spec.version);
  const properties = info.task === undefined ? undefined : { task: info.task };
  ctx.body = {
    name: model.spec.name,
    versions,
    platform: platformOf(model, info),
    properties,
    inputs,
    outputs,
  };
}

/** The configuration as far as there is one; waits for the app as a call does. */
export async function modelConfig(
  ctx: AnswerContext,
  context: RequestContext,
  params: PathParams,
): Promise<void> {
  const model = calledModel(context, params);
  const info = await awaitInfo(context, model);
  const { inputs, outputs } = signatureOf(info);
  const maxBatch = maxBatchOf(model, info);
  const dimsOf = ({ shape }: TensorSpec): number[] | undefined => shape?.slice(maxBatch > 0 ? 1 : 0);
  const described = (spec: TensorSpec): object => tensorConfig(spec, dimsOf(spec));
  ctx.body = {
    name: model.spec.name,
    platform: platformOf(model, info),
    backend: model.spec.program.label,
    version_policy: { latest: { num_versions: 1 } },
    max_batch_size: maxBatch,
    input: inputs.map((spec) => ({ ...described(spec), format: orderOf(dimsOf(spec)) })),
    output: outputs.map(described),
    model_transaction_policy: { decoupled: false },
  };
}

function signatureOf({ signature = NO_SIGNATURE }: LoadedInfo): Signature {
  return signature;
}

const NO_SIGNATURE: Signature = { inputs: [], outputs: [] };

function platformOf({ spec }: Model, { platform }: LoadedInfo): string {
  return platform ?? spec.program.label;
}

/** As Triton has it, a model of which calls are joined has a first dimension that its shapes do not name; 0 for others. */
function maxBatchOf({ options: { batchSize } }: Model, info: LoadedInfo): number {
  const { inputs, outputs } = signatureOf(info);
  const hasRows = inputs.length > 0 && [...inputs, ...outputs].every(({ shape }) => shape?.[0] === -1);
  return batchSize > 1 && hasRows && info.routes.some(({ maxBatch }) => maxBatch > 1) ? batchSize : 0;
}

/** JSON leaves out `dims` of a tensor that has no shape. */
function tensorConfig({ name, datatype }: TensorSpec, dims: readonly number[] | undefined): object {
  return { name, data_type: `TYPE_${datatype === 'BYTES' ? 'STRING' : datatype}`, dims };
}

/** The order of a picture's dimensions, of which clients for pictures ask: its colours, gray or RGB, stand first or last. */
function orderOf(dims: readonly number[] = []): string {
  const [first, last] = [dims[0], dims[2]].map((size) => size === 1 || size === 3);
  if (dims.length !== 3 || first === last) return 'FORMAT_NONE';
  return first === true ? 'FORMAT_NCHW' : 'FORMAT_NHWC';
}

export function modelStatistics(ctx: AnswerContext, context: RequestContext, params: PathParams): void {
  writeStatistics(ctx, context, calledVersions(context, params));
}

export function allStatistics(ctx: AnswerContext, context: RequestContext): void {
  writeStatistics(ctx, context, [...context.backend.models.all()]);
}

function writeStatistics(ctx: AnswerContext, { backend }: RequestContext, models: readonly Model[]): void {
  ctx.body = { model_stats: models.map((model) => statsOf(model.spec, backend.callsOf(model))) };
}

function statsOf({ name, version }: Model['spec'], figures: CallFigures): object {
  const { ok, failed, queued, run, batches } = figures;
  return {
    name,
    version,
    last_inference: 0,
    inference_count: ok.count,
    execution_count: batches.reduce((sum, [, count]) => sum + count, 0),
    inference_stats: {
      success: duration(ok),
      fail: duration(failed),
      queue: duration(queued),
      compute_input: NOTHING,
      compute_infer: duration(run),
      compute_output: NOTHING,
      cache_hit: NOTHING,
      cache_miss: NOTHING,
    },
    response_stats: {},
    batch_stats: batches.map(([size, count]) => ({
      batch_size: size,
      compute_input: NOTHING,
      compute_infer: { count, ns: 0 },
      compute_output: NOTHING,
    })),
    memory_usage: [],
  };
}

function duration({ count, seconds }: CallFigures['ok']): { readonly count: number; readonly ns: number } {
  return { count, ns: Math.round(seconds * 1e9) };
}

const NOTHING = { count: 0, ns: 0 };
