/** Writes one line for each call that was taken or refused: its id, what came of it, how long each part took. */
import type { IncomingMessage } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import { validTraceparent } from '../../../protocol/traceparent.js';
import type { Job } from '../../dispatch/job.js';
import { HTTP_STATUS } from '../socket/http-status.js';
import { bananaId } from '../socket/request-id.js';
import { Attempts } from './attempts.js';
import type { Asked } from './backend.js';
import type { Log } from '../../observe/log.js';

export class AccessLog {
  readonly #log: Log;
  readonly #attempts = new Attempts();

  constructor(log: Log) {
    this.#log = log;
  }

  settled({ request }: Asked, status: number, job: Job, error: ServeError | null): void {
    const nowMs = performance.now();
    const { path, requestId } = job.call;
    const times = {
      queueMs: Math.round(job.queueMs(nowMs)),
      runMs: Math.round(job.runMs),
      ms: Math.round(nowMs - job.acceptedAtMs),
    };
    // A client that has left got no status.
    const outcome = error === null ? { status } : { status: HTTP_STATUS[error.code], code: error.code };
    const fields = { ...traceOf(request), requestId, ...this.#attemptOf(request), ...outcome, ...times };
    this.#log.info(fields, `${request.method} ${path}`);
  }

  refused({ request, requestId }: Asked, { code }: ServeError): void {
    const fields = { ...traceOf(request), requestId, ...this.#attemptOf(request), code };
    this.#log.info(fields, `${request.method} ${request.url} refused`);
  }

  /** An answer that is no call's was cut off. */
  cut(request: IncomingMessage, requestId: string, { code }: ServeError): void {
    const fields = { ...traceOf(request), requestId, code };
    this.#log.info(fields, `${request.method} ${request.url} cut off`);
  }

  /** The attempt's number, from the second on. A client retries once it has its reply, so attempts end in their order. */
  #attemptOf({ headers }: IncomingMessage): { attempt?: number } {
    const id = bananaId(headers);
    const attempt = id === null ? 1 : this.#attempts.count(id);
    return attempt === 1 ? {} : { attempt };
  }
}

/** The caller's trace, by which a line of the log can be found. */
function traceOf(request: IncomingMessage): { traceparent?: string } {
  const traceparent = validTraceparent(request.headers['traceparent']);
  return traceparent === null ? {} : { traceparent };
}
