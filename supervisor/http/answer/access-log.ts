/**
 * Writes one line for each call, and each request to manage models, that was taken or refused: its id, what came of it, how long each part took.
 * No query is told: it may name a place by a secret.
 */
import type { IncomingMessage } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import { validTraceparent } from '../../../protocol/text/traceparent.js';
import type { Job } from '../../dispatch/job.js';
import type { Model } from '../../models/model.js';
import { HTTP_STATUS } from '../socket/http-status.js';
import { writtenPath } from '../socket/request-facts.js';
import { firstId } from '../socket/request-id.js';
import { Attempts } from './attempts.js';
import type { LoggedRequest, CountedRequest, RequestObserver } from '../request/backend.js';
import type { Log } from '../../observe/log.js';

export class AccessLog implements RequestObserver {
  readonly #log: Log;
  readonly #labelOf: (model: Model) => string;
  readonly #attempts = new Attempts();

  /** `labelOf`: how lines name a model; empty while there is only one. */
  constructor(log: Log, labelOf: (model: Model) => string) {
    this.#log = log;
    this.#labelOf = labelOf;
  }

  settled(asked: CountedRequest, job: Job, status: number, error: ServeError | null): void {
    const { request } = asked;
    const nowMs = performance.now();
    const { path, requestId } = job.call;
    const times = {
      queueMs: Math.round(job.queueMs(nowMs)),
      runMs: Math.round(job.runMs),
      ms: Math.round(nowMs - job.acceptedAtMs),
    };
    // A client that has left got no status.
    const outcome =
      error === null
        ? { status }
        : { status: HTTP_STATUS[error.code] === null ? null : status, code: error.code };
    const whose = this.#modelOf(asked);
    const fields = {
      ...traceOf(request),
      requestId,
      ...whose,
      ...this.#attemptOf(asked),
      ...outcome,
      ...times,
    };
    this.#log.info(fields, `${request.method} ${path}`);
  }

  refused(asked: CountedRequest, { code }: ServeError): void {
    const { request, requestId } = asked;
    const whose = this.#modelOf(asked);
    const fields = { ...traceOf(request), requestId, ...whose, ...this.#attemptOf(asked), code };
    this.#log.info(fields, `${request.method} ${writtenPath(request.url)} refused`);
  }

  answered(asked: LoggedRequest, status: number, error: ServeError | null): void {
    if (!asked.isLogged) return;
    const { request, requestId, path, acceptedAtMs } = asked;
    const outcome = error === null ? { status } : { status, code: error.code };
    const ms = Math.round(performance.now() - acceptedAtMs);
    const fields = { ...traceOf(request), requestId, ...this.#modelOf(asked), ...outcome, ms };
    this.#log.info(fields, `${request.method} ${path}`);
  }

  /** Nobody knows what was asked for. */
  broken(): void {}

  /** An answer that is no call's was cut off. */
  cut(request: IncomingMessage, requestId: string, { code }: ServeError): void {
    const fields = { ...traceOf(request), requestId, code };
    this.#log.info(fields, `${request.method} ${writtenPath(request.url)} cut off`);
  }

  #modelOf({ model }: CountedRequest): { model?: string } {
    const label = model === null ? '' : this.#labelOf(model);
    return label === '' ? {} : { model: label };
  }

  /** The attempt's number, from the second on. A client retries once it has its reply, so attempts end in their order. */
  #attemptOf({ request, headerNames }: CountedRequest): { attempt?: number } {
    const id = firstId(request.headers, headerNames.callIds);
    const attempt = id === null ? 1 : this.#attempts.count(id);
    return attempt === 1 ? {} : { attempt };
  }
}

/** The caller's trace, by which a line of the log can be found. */
function traceOf(request: IncomingMessage): { traceparent?: string } {
  const traceparent = validTraceparent(request.headers['traceparent']);
  return traceparent === null ? {} : { traceparent };
}
