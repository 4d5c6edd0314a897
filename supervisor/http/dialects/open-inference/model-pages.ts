/** Pages about a model: its readiness, its metadata, its configuration. */
import { ServeError } from '../../../../protocol/errors.js';
import type { LoadedInfo, Signature, TensorSpec } from '../../../../protocol/wire/messages.js';
import type { Model } from '../../../models/model.js';
import type { ModelStatus } from '../../../models/model-status.js';
import type { ModelRef } from '../../../models/models.js';
import { awaitInfo } from '../../call/await-app.js';
import type { Backend } from '../../request/backend.js';
import type { RequestContext } from '../../request/request-context.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import { calledModel, calledVersions, refOf, type PathParams } from './called-model.js';
import { notFound } from './failures.js';
import { writeReadiness } from './server-pages.js';

export function modelReady(ctx: AnswerContext, { backend }: RequestContext, params: PathParams): void {
  const ref = refOf(params);
  const { ready, state } = readinessOf(backend, ref);
  writeReadiness(ctx, ready, { name: ref.name, ready }, `The model ${ref.name} is ${state}.`);
}

/** A model that is being unregistered is not ready. @throws SERVE_MODEL_NOT_FOUND, SERVE_VERSION_NOT_FOUND */
function readinessOf(backend: Backend, ref: ModelRef): { ready: boolean; state: ModelStatus['state'] } {
  try {
    return backend.readiness(ref);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    if (thrown.code === 'SERVE_NOT_READY') return { ready: false, state: 'unloading' };
    throw notFound(thrown, ref);
  }
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
  ctx.body = { name: model.spec.name, versions, platform: platformOf(model, info), inputs, outputs };
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
