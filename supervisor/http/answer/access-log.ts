/**
 * Logs one line for each call and each management request, accepted or refused: its client, its id, its outcome, its times.
 * Queries are not logged, because they may contain secrets. Answers to clients without a key have so many lines a second,
 * unless a model ran for them; a probe has a line when its answer changes (`observe/line-limit.ts`).
 */
import type { IncomingMessage } from 'node:http';
import { seenStatus, type ServeError } from '../../../protocol/errors.js';
import { validTraceparent } from '../../../protocol/text/headers.js';
import type { Call } from '../../dispatch/call.js';
import type { Model } from '../../models/model.js';
import { clientOf, firstId, writtenPath } from '../socket/request-facts.js';
import type { RequestContext, CountedRequest, RequestObserver } from '../request/request-context.js';
import { LineLimit, probeAnswers } from '../../observe/line-limit.js';
import type { Log } from '../../observe/log.js';
import { loggedPath } from '../../observe/log-text.js';

export class AccessLog implements Partial<RequestObserver> {
  readonly #log: Log;
  readonly #labelOf: (model: Model) => string;
  readonly #countAttempt = attemptCounter();
  readonly #probes = probeAnswers();
  readonly #limit = new LineLimit((answers) =>
    this.#log.info({ answers }, `${answers} more answers to clients without a key`),
  );

  /** `labelOf`: the model's name in the log; empty while there is only one model. */
  constructor(log: Log, labelOf: (model: Model) => string) {
    this.#log = log;
    this.#labelOf = labelOf;
  }

  settled(counted: CountedRequest, call: Call, status: number, error: ServeError | null): void {
    const attempt = this.#attemptOf(counted);
    if (!call.hasBegun && !this.#mayLog(counted)) return;
    const { path, requestId } = call.message;
    const nowMs = performance.now();
    const times = {
      queueMs: Math.round(call.queueMs(nowMs)),
      runMs: Math.round(call.runMs),
      ms: Math.round(nowMs - call.acceptedAtMs),
    };
    const facts = { requestId, ...this.#modelOf(counted), ...attempt, ...outcomeOf(status, error), ...times };
    this.#write(counted, path, facts);
  }

  refused(counted: CountedRequest, error: ServeError, status: number): void {
    const attempt = this.#attemptOf(counted);
    if (!this.#mayLog(counted)) return;
    const { request, requestId } = counted;
    const facts = { requestId, ...this.#modelOf(counted), ...attempt, ...outcomeOf(status, error) };
    this.#write(counted, writtenPath(request.url), facts, ' refused');
  }

  answered(logged: RequestContext, status: number, error: ServeError | null): void {
    const { requestId, path, acceptedAtMs, isLogged, isProbe } = logged;
    if (!isLogged && !(isProbe && this.#probes(path, status) === 'changed')) return;
    if (!this.#mayLog(logged)) return;
    const ms = Math.round(performance.now() - acceptedAtMs);
    this.#write(logged, path, { requestId, ...this.#modelOf(logged), ...outcomeOf(status, error), ms });
  }

  /** Logs that an answer which does not belong to a call was cut off. */
  cut(request: IncomingMessage, requestId: string, error: ServeError): void {
    if (!this.#limit.allows()) return;
    const answered = { request, client: clientOf(request) };
    this.#write(answered, writtenPath(request.url), { requestId, ...outcomeOf(0, error) }, ' cut off');
  }

  /** Whether there may be a line for an answer for which no model ran. */
  #mayLog({ hasKey }: CountedRequest): boolean {
    return hasKey || this.#limit.allows();
  }

  #write(
    { request, client }: Pick<CountedRequest, 'request' | 'client'>,
    written: string,
    facts: object,
    end = '',
  ): void {
    const { method } = request;
    const path = loggedPath(written);
    this.#log.info({ ...traceOf(request), ...facts, method, path, client }, `${method} ${path}${end}`);
  }

  #modelOf({ model }: CountedRequest): { model?: string } {
    const label = model === null ? '' : this.#labelOf(model);
    return label === '' ? {} : { model: label };
  }

  /** The number of the attempt, from 2 on. Clients retry after a reply, so attempts end in order. */
  #attemptOf({ request, headerNames }: CountedRequest): { attempt?: number } {
    const id = firstId(request.headers, headerNames.callIds);
    const attempt = id === null ? 1 : this.#countAttempt(id);
    return attempt === 1 ? {} : { attempt };
  }
}

/** A client that disconnected, or was cut off, got no status. */
function outcomeOf(status: number, error: ServeError | null): { status: number | null; code?: string } {
  if (error === null) return { status };
  return { status: seenStatus(status, error), code: error.code };
}

/** The caller's `traceparent`, if it is valid, so that log lines can be matched with traces. */
function traceOf(request: CountedRequest['request']): { traceparent?: string } {
  const traceparent = validTraceparent(request.headers['traceparent']);
  return traceparent === null ? {} : { traceparent };
}

/** Number of ids that are remembered; clients retry within seconds. */
const REMEMBERED = 10_000;

/**
 * Returns a function that counts the attempts of a call, whose id some clients send with every retry: 1 if the id is new or
 * forgotten. Old ids are forgotten, to bound memory.
 */
export function attemptCounter(remembered = REMEMBERED): (id: string) => number {
  const attempts = new Map<string, number>(); // the id seen longest ago comes first
  return (id) => {
    const attempt = (attempts.get(id) ?? 0) + 1;
    attempts.delete(id); // moves it to the end
    attempts.set(id, attempt);
    const [oldest] = attempts.keys();
    if (attempts.size > remembered && oldest !== undefined) attempts.delete(oldest);
    return attempt;
  };
}
