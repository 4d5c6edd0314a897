/** Statistics of models: the counts of `/metrics` in Triton's form, and 0 for what is not measured. */
import type { CallFigures, CountedTime } from '../../request/backend.js';
import type { RequestContext } from '../../request/request-context.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import type { Model } from '../../../models/model.js';
import { calledVersions, type PathParams } from './called-model.js';

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

function duration({ count, seconds }: CountedTime): { readonly count: number; readonly ns: number } {
  return { count, ns: Math.round(seconds * 1e9) };
}

const NOTHING = { count: 0, ns: 0 };
