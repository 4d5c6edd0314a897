/**
 * A dialect turns HTTP into calls, and replies and errors into HTTP. It defines everything about itself: its paths, the
 * place of its key, the requests that count as calls, the form of its errors. `index.ts` lists the dialects in order of
 * precedence; no dialect imports another.
 */
import { ServeError } from '../../../protocol/errors.js';
import type { Models } from '../../models/models.js';
import type { ClientHeaders } from '../access/client-headers.js';
import type { AnswerContext, WriteAnswer } from '../answer/koa-answers.js';
import type { CallPlan } from '../call/call-plan.js';
import type { NamedSchema } from '../openapi/errors.js';
import type { DescribedOperation, DescribedServer } from '../openapi/operation.js';
import type { CallPath, CalledRoute } from '../request/call-paths.js';
import type { AnswerStyle, ReadinessAnswer, RequestContext } from '../request/request-context.js';
import { writtenPath } from '../socket/request-facts.js';

export type { CallPlan, ChooseRoute, NamedTarget, OpenedBody, Target } from '../call/call-plan.js';
export type { Failure } from '../socket/refuse.js';

export interface Dialect extends AnswerStyle {
  /**
   * The front's own paths in this dialect, patterns included, each with its methods as an `Allow` header lists them.
   */
  readonly paths: ReadonlyMap<string, string>;
  /** It is asked only for requests that read a page: `GET` and `HEAD`, no WebSockets. */
  readonly hasOnlyPages?: true;
  /**
   * Returns the operation of a request, by its path and method, without reading the body. Null if the request does not
   * belong to this dialect: then the next one is asked. A ServeError that it throws refuses the request, which counts
   * as a call.
   */
  claim(context: RequestContext, models: Models): Operation | null;
  /** Whether a path that cannot be decoded, and so is no claim's, is this dialect's: its error has this dialect's form. */
  owns?(writtenPath: string): boolean;
  /** The paths at which a route can be called, the best first. */
  callPaths?(called: CalledRoute): readonly CallPath[];
  /** The body that `fail` returns, in the OpenAPI document. */
  readonly errorBody?: NamedSchema;
  /**
   * Describes the operations of this dialect that the server answers now, for the OpenAPI document. Those of its fixed
   * paths lie in a JSON file beside it (`operationsOf`).
   */
  describe(server: DescribedServer): Iterable<DescribedOperation>;
  /** Headers in which its clients send their keys and call ids; they count on every path of a listener. */
  readonly clientHeaders?: ClientHeaders;
}

/** The dialect that answers the requests of a listener that no dialect claims. */
export interface DefaultDialect extends Dialect {
  /** Also called for a request with an unreadable path, which is given as written. Never throws. */
  unclaimed(context: RequestContext, models: Models): Operation;
}

export interface Operation {
  /**
   * The place of the key, if keys are required. `body`: possibly in the body, where the answer, or the plan's `open`,
   * reads it.
   */
  readonly auth: 'none' | 'call' | 'management' | 'body';
  /**
   * The dialect does not know yet whether the request is its own: it gets the request if no other dialect claims it.
   */
  readonly isGuess?: boolean;
  /** Whether it is a call: then it counts in `sequence_number`, and if it is refused in the replies of `/status`. */
  readonly counts: boolean;
  /** The access log lists this answer of the dialect's own like a call. */
  readonly isLogged?: boolean;
  /** The methods of this path, as an `Allow` header lists them; so it does if the request is refused for its method. */
  readonly methods: string;
  /**
   * `answer`: the dialect answers by itself, and rejects only because of a bug in this server. `write`: it answers through
   * Koa; a ServeError that it throws is answered as `fail` returns it. A page about an app may wait until the app is loaded
   * (`awaitInfo` of `call/await-app.ts`). `refuse`: the error in this dialect's form. `find`:
   * only a look tells whether the request is this dialect's; null leaves it to the others.
   */
  readonly act:
    | { answer(context: RequestContext): void | Promise<void> }
    | { readonly write: WriteAnswer }
    | { readonly refuse: ServeError }
    | { find(context: RequestContext): Promise<WriteAnswer | null> }
    | CallPlan;
}

/** Refuses a request that may have been meant as a call. */
export function refusal({ request }: RequestContext, refuse: ServeError): Operation {
  return { auth: 'call', counts: request.method === 'POST', methods: '', act: { refuse } };
}

/** The error of a method that the path does not take. The path is shown as written, so that nothing in it can end its line. */
export function methodMistake({ request: { method, url } }: RequestContext, methods: string): ServeError {
  return new ServeError('SERVE_METHOD_NOT_ALLOWED', `${writtenPath(url)} takes ${methods}, not ${method}.`);
}

/** Returns the error in these words, if a model or its version was not found. */
export function rewordNotFound(error: ServeError, noModel: string, noVersion: string): ServeError {
  if (error.code === 'SERVE_MODEL_NOT_FOUND') return new ServeError(error.code, noModel);
  return error.code === 'SERVE_VERSION_NOT_FOUND' ? new ServeError(error.code, noVersion) : error;
}

/** Refuses a method that a path with these does not take. */
export function wrongMethod(
  context: RequestContext,
  methods: string,
  auth: Operation['auth'] = 'call',
): Operation {
  return { auth, counts: false, methods, act: { refuse: methodMistake(context, methods) } };
}

/** The operation of a path that takes nothing but calls. */
export function callByPost(context: RequestContext, plan: () => CallPlan): Operation {
  const [auth, methods] = ['call', 'POST'] as const;
  if (context.request.method === methods) return { auth, counts: true, methods, act: plan() };
  return wrongMethod(context, methods);
}

/** Answers `OPTIONS`. */
export function writeMethods(methods: string): WriteAnswer {
  return (ctx) => {
    ctx.status = 200;
    ctx.set('Allow', methods);
    ctx.body = '';
  };
}

/** Answers a probe: by its status, and in words. */
export function writeReadiness(ctx: AnswerContext, { ready, body }: ReadinessAnswer): void {
  ctx.status = ready ? 200 : 503;
  ctx.body = body;
}
