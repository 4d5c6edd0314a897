/** What a dialect says of a call, before anything is read of its body. `answer-call.ts` follows it. */
import type { ServeError } from '../../../protocol/errors.js';
import type { Format } from '../../../protocol/wire/messages.js';
import type { JobCall } from '../../dispatch/job.js';
import type { KeptJob } from '../../jobs/kept-jobs.js';
import type { Routes } from '../../models/app-description.js';
import type { Model } from '../../models/model.js';
import type { Body } from '../socket/body-memory.js';
import type { RequestContext } from '../request/request-context.js';

/** Who is called. */
export interface Target {
  readonly model: Model;
  /** Path of the app's route, or how it is chosen. It need not be known yet: the call waits until the app is loaded. */
  readonly route: string | ChooseRoute;
}

/** A target whose route is named: that of a WebSocket is. */
export interface NamedTarget extends Target {
  readonly route: string;
}

/** Chooses the path of one of the routes that an app has. May throw a ServeError. */
export type ChooseRoute = (routes: Routes) => string;

/**
 * Finds the target in the beginning of the body, and is asked again as more of it arrives. With `isLast` (the body is
 * whole, or MAX_PREFIX_BYTES of it are there) it must decide. May throw a ServeError.
 */
export type FindTarget = (prefix: Buffer, isLast: boolean) => Target | 'more';

/** A name that chooses a model stands in the first so many bytes of a body. */
export const MAX_PREFIX_BYTES = 64 * 1024;

export interface CallPlan {
  readonly target: Target | FindTarget;
  /** How the worker is to read the body. A `websocket` has no body, and its target is known at once, by name. */
  readonly format: Format;
  /** What path and query say besides the route, for the app; text is a query string already. */
  readonly params?: Readonly<Record<string, string>> | string;
  /** The client reads JSON only if it is pure ASCII. */
  readonly asciiJson?: boolean;
  /** What the client is told if the app has no such route. */
  readonly noRoute?: ServeError;
  /**
   * Takes the model's input out of a body that wraps it; without it the whole body is the input. The call outlives its
   * client then, and the client sets no deadline for it.
   */
  readonly open?: (context: RequestContext, body: Body) => Promise<OpenedBody>;
}

/** What stood in a body that wraps the model's input. */
export interface OpenedBody {
  readonly input: Buffer;
  /** How the worker sees the input described, in place of what the request says of its body. */
  readonly described: Pick<JobCall, 'contentType' | 'accept' | 'headers'>;
  /** The key, if the body has one. */
  readonly key: string | null;
  /** Answers the client, now or later; the call has been submitted, and may have failed at once. */
  answerKept(context: RequestContext, kept: KeptJob): void;
}
