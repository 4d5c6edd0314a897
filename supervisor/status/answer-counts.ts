/** Counts the outcomes of calls for `/status`, and passes every outcome on to other observers, such as the access log. */
import type { IncomingMessage } from 'node:http';
import { httpStatus, isAppsRefusal, type ServeError } from '../../protocol/errors.js';
import type { Call } from '../dispatch/call.js';
import type { RequestContext, CountedRequest, RequestObserver } from '../http/request/request-context.js';
import type { Model } from '../models/model.js';
import { RecentCalls } from './recent-calls.js';

export class AnswerCounts implements RequestObserver {
  readonly #observers: Partial<RequestObserver>[] = [];
  readonly #replies = new Map<string, number>();
  /** Recent calls by model, for the management pages. */
  readonly recent = new RecentCalls<Model>();

  /** The observer gets every outcome from now on, if it does not get them already. */
  tell(observer: Partial<RequestObserver>): void {
    if (!this.#observers.includes(observer)) this.#observers.push(observer);
  }

  /** Number of answers to calls so far, by `ok` or error code. */
  get replies(): ReadonlyMap<string, number> {
    return this.#replies;
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
    this.#replies.set(outcome, (this.#replies.get(outcome) ?? 0) + 1);
  }
}
