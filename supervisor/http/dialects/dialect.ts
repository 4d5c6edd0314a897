/**
 * A dialect turns HTTP into calls, and replies and errors into HTTP. It says everything about itself: its paths, where
 * its key stands, what it counts, how its errors look. `index.ts` lists the dialects in their order of precedence; no
 * dialect imports another.
 */
import type { ServeError } from '../../../protocol/errors.js';
import type { Models } from '../../models/models.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan } from '../call/call-plan.js';
import type { ClientHeaders } from '../access/client-headers.js';
import type { WriteAnswer } from '../answer/koa-answers.js';
import type { Failure } from '../socket/refuse.js';

export type { CallPlan, ChooseRoute, NamedTarget, OpenedBody, Target } from '../call/call-plan.js';
export type { Failure } from '../socket/refuse.js';

export interface Dialect {
  readonly name: string;
  /** The paths of the front's own that it answers, patterns among them, and the methods of each as `Allow` lists them. */
  readonly paths: ReadonlyMap<string, string>;
  /**
   * Says what this request is, by its path and method; nothing is read of its body. Null if it is no request of this
   * dialect: the next one is asked. A ServeError that it throws refuses the request, which counts as a call.
   */
  claim(context: RequestContext, models: Models): Operation | null;
  /** Says how an error looks here. `context` is null for what the HTTP parser has refused. */
  fail(error: ServeError, requestId: string, context: RequestContext | null): Failure;
  /** Headers in which its clients show their keys and name their calls; they count on every path of a listener. */
  readonly clientHeaders?: ClientHeaders;
  /** Headers of every answer to a request that this dialect has claimed. */
  headers?(context: RequestContext): Readonly<Record<string, string>>;
  /** The names of those headers in lower case, where an app may not set them: what it says of them is left out. */
  readonly ownHeaders?: ReadonlySet<string>;
  /** Whether an answer with this status, the app's or the dialect's own, ends its connection; `fail` says it of errors. */
  closes?(status: number): boolean;
}

/** The dialect of a listener that answers what nobody claims. */
export interface DefaultDialect extends Dialect {
  /** Also asked of a request whose path cannot be read, as it is written then. Throws nothing. */
  unclaimed(context: RequestContext, models: Models): Operation;
}

export interface Operation {
  /** Where the key stands, if keys are required. `body`: perhaps there, where the answer, or the plan's `open`, finds it. */
  readonly auth: 'none' | 'call' | 'management' | 'body';
  /** The dialect cannot know yet whether the request is its own: it has the request if nobody else claims it. */
  readonly isGuess?: boolean;
  /** Whether it is a call: it counts in `sequence_number`, and if it is refused in the replies of `/status`. */
  readonly counts: boolean;
  /** An answer of the dialect's own that the access log has like a call. */
  readonly isLogged?: boolean;
  /** The methods that this path takes, as an `Allow` header lists them. */
  readonly methods: string;
  readonly act: OwnAnswer | KoaAnswer | Refusal | CallPlan;
}

/** An answer that the dialect writes itself. Rejects only for a defect of ours. */
export interface OwnAnswer {
  answer(context: RequestContext): void | Promise<void>;
}

/** An answer of the dialect's own by way of Koa. A ServeError that it throws is answered as `fail` says. */
export interface KoaAnswer {
  readonly write: WriteAnswer;
}

/** A path of the dialect's that is not to be had this way. If its method was wrong, `methods` become the `Allow` header. */
export interface Refusal {
  readonly refuse: ServeError;
}
