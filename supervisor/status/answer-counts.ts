/** Counts the outcomes of calls for `/status`, and passes every outcome on to other observers, such as the access log. */
import type { IncomingMessage } from 'node:http';
import { httpStatus, isAppsRefusal, type ServeError } from '../../protocol/errors.js';
import type { Call } from '../dispatch/call.js';
import type { ModelRecord } from '../http/request/model-management.js';
import type { RequestContext, CountedRequest, RequestObserver } from '../http/request/request-context.js';
import type { Model } from '../models/model.js';

export class AnswerCounts implements RequestObserver {
  readonly #observers: Partial<RequestObserver>[] = [];
  /** Number of answers to calls so far, by `ok` or error code. */
  readonly replies = new Map<string, number>();
  /** Recent calls by model, for the management pages. */
  readonly recent = new RecentCalls();

  /** The observer gets every outcome from now on, if it does not get them already. */
  tell(observer: Partial<RequestObserver>): void {
    if (!this.#observers.includes(observer)) this.#observers.push(observer);
  }

  settled(request: CountedRequest, call: Call, status: number, error: ServeError | null): void {
    this.#count(error === null || isAppsRefusal(error) ? 'ok' : error.code);
    this.#countRecent(request, error);
    for (const observer of this.#observers) observer.settled?.(request, call, status, error);
  }

  refused(request: CountedRequest, error: ServeError, status: number): void {
    if (request.counts) {
      this.#count(error.code);
      this.#countRecent(request, error);
    }
    for (const observer of this.#observers) observer.refused?.(request, error, status);
  }

  /** Not a call, so it is not counted. */
  answered(request: RequestContext, status: number, error: ServeError | null): void {
    for (const observer of this.#observers) observer.answered?.(request, status, error);
  }

  broken(status: number): void {
    for (const observer of this.#observers) observer.broken?.(status);
  }

  cut(request: IncomingMessage, requestId: string, error: ServeError): void {
    this.#count(error.code);
    for (const observer of this.#observers) observer.cut?.(request, requestId, error);
  }

  #countRecent({ model }: CountedRequest, error: ServeError | null): void {
    if (model !== null) this.recent.count(model, error !== null && httpStatus(error.code) === 503);
  }

  #count(outcome: string): void {
    this.replies.set(outcome, (this.replies.get(outcome) ?? 0) + 1);
  }
}

const MINUTES = 10;
const MINUTE_MS = 60_000;

interface Minute {
  /** Minutes since the origin of the clock. */
  readonly number: number;
  requests: number;
  rejected: number;
}

/** Counts the calls of each model in the last ten minutes, by minute. */
export class RecentCalls {
  readonly #byModel = new WeakMap<Model, Minute[]>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  count(model: Model, isRejected: boolean): void {
    const number = this.#minute();
    const minutes = this.#byModel.get(model) ?? [];
    let last = minutes.at(-1);
    if (last?.number !== number) {
      last = { number, requests: 0, rejected: 0 };
      this.#byModel.set(model, [...minutes.slice(1 - MINUTES), last]);
    }
    last.requests += 1;
    if (isRejected) last.rejected += 1;
  }

  /** `rejected`: calls answered with 503; they are included in `requests`. */
  of(model: Model): ModelRecord['recentCalls'] {
    const oldest = this.#minute() - MINUTES;
    const recent = (this.#byModel.get(model) ?? []).filter(({ number }) => number > oldest);
    return {
      requests: recent.reduce((sum, { requests }) => sum + requests, 0),
      rejected: recent.reduce((sum, { rejected }) => sum + rejected, 0),
    };
  }

  #minute(): number {
    return Math.floor(this.#nowMs() / MINUTE_MS);
  }
}
