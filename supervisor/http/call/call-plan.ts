/**
 * The two records of a call over HTTP: its plan, which a dialect makes before any of the body is read, and the call itself
 * once its route is known. `answer-call.ts` makes the second of the first.
 */
import type { ServeError } from '../../../protocol/errors.js';
import type { Route } from '../../../protocol/wire/messages.js';
import type { CallMessage } from '../../dispatch/call.js';
import type { JobRecord } from '../../jobs/job-record.js';
import type { Routes } from '../../models/generations.js';
import type { Model } from '../../models/model.js';
import type { Body } from '../socket/body-memory.js';
import type { AnswerStyle, RequestContext } from '../request/request-context.js';
import type { WishedJob } from './wished-job.js';

/** The model and route that a call is for. */
export interface Target {
  readonly model: Model;
  /** Path of the app's route, or a function that chooses it once the app is loaded. */
  readonly route: string | ChooseRoute;
  /** Whether the request names the version of the model: a job then waits for that one. */
  readonly namesVersion?: boolean;
}

/** A target whose route is given by its path, as for every WebSocket. */
export interface NamedTarget extends Target {
  readonly route: string;
}

/** Chooses one of the app's routes and returns its path. May throw a ServeError. */
export type ChooseRoute = (routes: Routes) => string;

/**
 * Finds the target in the beginning of the body. Called again as more arrives; with `isLast` (the body is complete, or
 * MAX_PREFIX_BYTES have arrived) it must decide. May throw a ServeError.
 */
export type FindTarget = (prefix: Buffer, isLast: boolean) => Target | 'more';

/** The model's name must be within this many bytes of the start of a body. */
export const MAX_PREFIX_BYTES = 64 * 1024;

export interface CallPlan {
  readonly target: Target | FindTarget;
  /**
   * Name of the format in which the worker reads the body: `auto` by its content type, else a file of both workers'
   * `formats/`. A `websocket` has no body, and its target is a `NamedTarget`.
   */
  readonly format: string;
  /**
   * Name of the format in which the worker writes the answer, whatever the app returns; by default `auto`: by the value
   * and the client's Accept header. If it is also `format`, the writer knows what the reader has found.
   */
  readonly answer?: string;
  /** Parameters of the dialect for its formats in the worker, beside `params`; the app does not get them. A function: once the model is known. */
  readonly dialectParams?:
    Readonly<Record<string, string>> | ((model: Model) => Readonly<Record<string, string>>);
  /** Parameters of the path and the query, for the app; a string is already encoded as a query string. */
  readonly params?: Readonly<Record<string, string>> | string;
  /** The client reads JSON only if it is pure ASCII. */
  readonly asciiJson?: boolean;
  /** The error if the app has no such route; SERVE_NOT_FOUND by default. */
  readonly noRoute?: ServeError;
  /**
   * The call of the app's own route of this path, and its dialect, if it turns out to have one; it takes precedence over this
   * plan.
   */
  readonly own?: { readonly style: AnswerStyle; readonly plan: NamedPlan };
  /**
   * Extracts the model's input from a body that wraps it; if absent, the whole body is the input. Such a call outlives its
   * client's connection, and the client cannot set a deadline for it.
   */
  readonly open?: (context: RequestContext, body: Body) => Promise<OpenedBody>;
  /** Returns the plan, of the same target, that the whole body asks for; null if this one stays. */
  readonly byBody?: (body: Body) => Promise<CallPlan | null>;
}

/** The plan of a call whose target is known from its path. */
export type NamedPlan = CallPlan & { readonly target: NamedTarget };

/** A call whose route is known and takes the request; `answer-call.ts` makes a `Call` of it when its body has arrived. */
export interface RoutedCall {
  /** The plan that it follows: that of the dialect that has claimed it, or of the app's own route. */
  readonly plan: CallPlan;
  readonly model: Model;
  readonly route: Route;
  /** The client's time limit in ms from its request; null without one, and for a job. */
  readonly deadlineMs: number | null;
  /** The wishes for a job, which outlives its client's connection; null if the client waits for the answer. */
  readonly job: WishedJob | null;
}

/** The contents of a body that wraps the model's input. */
export interface OpenedBody {
  readonly input: Buffer;
  /** Headers that describe the input to the worker, instead of the request's own. */
  readonly described: Pick<CallMessage, 'contentType' | 'accept' | 'headers'> &
    Partial<Pick<CallMessage, 'dialectParams'>>;
  /** The key, if the body has one. */
  readonly key: string | null;
  /**
   * Facts about the job that its client has chosen in the body. `isNamed`: it has chosen the id, so calls of this id are one
   * job. `webhook`: empty if there is none.
   */
  readonly job?: { readonly id: string; readonly isNamed: boolean; readonly webhook: string };
  /** Answers the client, now or later: the call is stored as a job. */
  answerKept(context: RequestContext, accepted: JobRecord): Promise<void>;
}
