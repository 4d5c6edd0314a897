/** Lets dialects answer with Koa: they set status, type and body on its context. The only module that uses Koa, also to negotiate. */
import Koa from 'koa';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { ServeError, describeThrown } from '../../../protocol/errors.js';
import type { Log } from '../../observe/log.js';
import { loggedPath } from '../../observe/log-text.js';
import { inTurns } from '../json/slices.js';
import { writtenPath } from '../socket/request-facts.js';
import { turns } from '../socket/shared-turns.js';
import { answerError, commonHeaders } from './own-answers.js';
import type { RequestContext } from '../request/request-context.js';

/** The part of Koa's context that dialects use. Our published types must not need Koa's, which programs may not have. */
export interface AnswerContext {
  readonly res: ServerResponse;
  /** Default: 200 with a body, 404 without. */
  status: number;
  /** The phrase beside the status. */
  message: string;
  type: string;
  /** In bytes; needed for a stream only. */
  length: number;
  /** Bytes, text, a stream, or data that is sent as JSON. */
  body: unknown;
  set(name: string, value: string): void;
}

/** A body, in pieces that are made as they are sent. */
export interface Pieces {
  readonly pieces: Iterable<Buffer>;
  /** The size of all pieces together. */
  readonly bytes: number;
}

/** Sends the pieces as the client takes them: thousands may request one result. */
export function sendInTurns(ctx: AnswerContext, { pieces, bytes }: Pieces): void {
  ctx.body = Readable.from(inTurns(pieces), { objectMode: false });
  ctx.length = bytes;
}

export type WriteAnswer = (ctx: AnswerContext, context: RequestContext) => void | Promise<void>;

/** Whether the client likes HTML better than JSON, by its `Accept`: true for browsers, false for clients that take everything. */
export function prefersHtml(request: IncomingMessage): boolean {
  const negotiated = Object.create(negotiating.request) as Koa.Request;
  negotiated.req = request;
  return negotiated.accepts('json', 'html') === 'html';
}

/** Answers nothing: its prototype of a request reads headers. */
const negotiating = new Koa();

/**
 * Returns a function that answers a request as `write` sets it. A ServeError that `write` throws is answered in the dialect's
 * format, and the function resolves with it.
 */
export function koaAnswers(
  log: Log,
): (context: RequestContext, write: WriteAnswer) => Promise<ServeError | null> {
  const app = new Koa();
  const pending = new WeakMap<
    IncomingMessage,
    { context: RequestContext; write: WriteAnswer; error: ServeError | null }
  >();
  app.use(async (ctx) => {
    const answer = pending.get(ctx.req)!;
    const { context, write } = answer;
    ctx.set(commonHeaders(context));
    try {
      await turns.own();
      await write(ctx, context);
      if (context.dialect.closes?.(ctx.status) === true) ctx.set('Connection', 'close');
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      ctx.respond = false;
      answer.error = thrown;
      answerError(context, thrown);
    }
  });
  app.on('error', (thrown: unknown, ctx?: Koa.Context) => {
    if (ctx?.req.socket.destroyed === true) return; // the client disconnected, which is common and not our failure
    log.error(
      { path: loggedPath(writtenPath(ctx?.req.url)) },
      `a request handler failed: ${describeThrown(thrown).stack}`,
    );
  });
  const handle = app.callback();
  return async (context, write) => {
    const answer = { context, write, error: null };
    pending.set(context.request, answer);
    await handle(context.request, context.response);
    return answer.error;
  };
}
