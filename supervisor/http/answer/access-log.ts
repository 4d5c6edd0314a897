/**
 * Logs one line for each call and each management request, accepted or refused: its id, its outcome, its times. Queries are
 * not logged, because they may contain secrets.
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

  /** `labelOf`: the model's name in the log; empty while there is only one model. */
  constructor(log: Log, labelOf: (model: Model) => string) {
    this.#log = log;
    this.#labelOf = labelOf;
  }

  settled(counted: CountedRequest, job: Job, status: number, error: ServeError | null): void {
    const { request } = counted;
    const nowMs = performance.now();
    const { path, requestId } = job.call;
    const times = {
      queueMs: Math.round(job.queueMs(nowMs)),
      runMs: Math.round(job.runMs),
      ms: Math.round(nowMs - job.acceptedAtMs),
    };
    // A client that disconnected got no status.
    const outcome =
      error === null
        ? { status }
        : { status: HTTP_STATUS[error.code] === null ? null : status, code: error.code };
    const fields = {
      ...traceOf(request),
      requestId,
      ...this.#modelOf(counted),
      ...this.#attemptOf(counted),
      ...outcome,
      ...times,
    };
    this.#log.info(fields, `${request.method} ${path}`);
  }

  refused(counted: CountedRequest, { code }: ServeError): void {
    const { request, requestId } = counted;
    const model = this.#modelOf(counted);
    const fields = { ...traceOf(request), requestId, ...model, ...this.#attemptOf(counted), code };
    this.#log.info(fields, `${request.method} ${writtenPath(request.url)} refused`);
  }

  answered(logged: LoggedRequest, status: number, error: ServeError | null): void {
    if (!logged.isLogged) return;
    const { request, requestId, path, acceptedAtMs } = logged;
    const outcome = error === null ? { status } : { status, code: error.code };
    const ms = Math.round(performance.now() - acceptedAtMs);
    const fields = { ...traceOf(request), requestId, ...this.#modelOf(logged), ...outcome, ms };
    this.#log.info(fields, `${request.method} ${path}`);
  }

  /** Not logged: no method or path is known. */
  broken(): void {}

  /** Logs that an answer which does not belong to a call was cut off. */
  cut(request: IncomingMessage, requestId: string, { code }: ServeError): void {
    const fields = { ...traceOf(request), requestId, code };
    this.#log.info(fields, `${request.method} ${writtenPath(request.url)} cut off`);
  }

  #modelOf({ model }: CountedRequest): { model?: string } {
    const label = model === null ? '' : this.#labelOf(model);
    return label === '' ? {} : { model: label };
  }

  /** The number of the attempt, from 2 on. Clients retry after a reply, so attempts end in order. */
  #attemptOf({ request, headerNames }: CountedRequest): { attempt?: number } {
    const id = firstId(request.headers, headerNames.callIds);
    const attempt = id === null ? 1 : this.#attempts.count(id);
    return attempt === 1 ? {} : { attempt };
  }
}

/** The caller's `traceparent`, if it is valid, so that log lines can be matched with traces. */
function traceOf(request: IncomingMessage): { traceparent?: string } {
  const traceparent = validTraceparent(request.headers['traceparent']);
  return traceparent === null ? {} : { traceparent };
}
