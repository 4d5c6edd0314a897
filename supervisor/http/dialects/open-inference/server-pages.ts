/** Pages about the server: its metadata, its health, its models. */
import { VERSION } from '../../../version.js';
import type { RequestContext } from '../../request/request-context.js';
import type { AnswerContext, WriteAnswer } from '../../answer/koa-answers.js';

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
export function writeReadiness(ctx: AnswerContext, isReady: boolean, body: object, problem: string): void {
  ctx.status = isReady ? 200 : 400;
  ctx.body = isReady ? body : { ...body, error: problem };
}

export function listModels(ctx: AnswerContext, { backend }: RequestContext): void {
  ctx.body = { models: [...new Set(Array.from(backend.models.all(), ({ spec }) => spec.name))] };
}
