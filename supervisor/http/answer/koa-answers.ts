/** Lets dialects answer by way of Koa: status, type, body and stream are set on its context. Only here is Koa used. */
import Koa from 'koa';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServeError, describeThrown } from '../../../protocol/errors.js';
import type { Log } from '../../observe/log.js';
import { boundRest } from '../socket/refuse.js';
import { writtenPath } from '../socket/request-facts.js';
import { answerError } from './answer-error.js';
import type { RequestContext } from '../request/request-context.js';

/** What a dialect may use of Koa's context. Programs compile against our types, and they may have none of Koa's. */
export interface AnswerContext {
  readonly res: ServerResponse;
  /** 200 if a body is set, 404 if none is. */
  status: number;
  type: string;
  /** In bytes; needed for a stream only. */
  length: number;
  /** Bytes, text, a stream, or data to be sent as JSON. */
  body: unknown;
  set(name: string, value: string): void;
}

export type WriteAnswer = (ctx: AnswerContext, context: RequestContext) => void | Promise<void>;

/**
 * Answers a request with what `write` sets. A ServeError that it throws is answered as its dialect says, and returned; else
 * null.
 */
export type AnswerWithKoa = (context: RequestContext, write: WriteAnswer) => Promise<ServeError | null>;

interface KoaRequest {
  readonly context: RequestContext;
  readonly write: WriteAnswer;
  error: ServeError | null;
}

export function koaAnswers(log: Log): AnswerWithKoa {
  const app = new Koa();
  const all = new WeakMap<IncomingMessage, KoaRequest>();
  app.use(async (ctx) => {
    const asked = all.get(ctx.req) as KoaRequest;
    const { context, write } = asked;
    ctx.set('X-Request-Id', context.requestId);
    if (context.backend.closing(ctx.req)) ctx.set('Connection', 'close');
    ctx.set(context.dialect.headers?.(context) ?? {});
    context.response.once('finish', () => boundRest(context.request));
    try {
      await write(ctx, context);
      if (context.dialect.closes?.(ctx.status) === true) ctx.set('Connection', 'close');
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      ctx.respond = false;
      asked.error = thrown;
      answerError(context, thrown);
    }
  });
  app.on('error', (thrown: unknown, ctx?: Koa.Context) => {
    if (ctx?.req.socket.destroyed === true) return; // the client hung up: no failure of ours, and it may do so often
    log.error(
      { path: writtenPath(ctx?.req.url) },
      `a request handler failed: ${describeThrown(thrown).stack}`,
    );
  });
  const handle = app.callback();
  return async (context, write) => {
    const asked: KoaRequest = { context, write, error: null };
    all.set(context.request, asked);
    await handle(context.request, context.response);
    return asked.error;
  };
}
