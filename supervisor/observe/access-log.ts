/** One line for each call that was taken, or refused: who, what came of it, how long each part took. */
import type { IncomingMessage } from 'node:http';
import type { ServeError } from '../../protocol/errors.js';
import { validTraceparent } from '../../protocol/traceparent.js';
import type { Job } from '../dispatch/job.js';
import { HTTP_STATUS } from '../http/http-status.js';
import type { Log } from './log.js';

export class AccessLog {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  settled(request: IncomingMessage, status: number, job: Job, error: ServeError | null): void {
    const nowMs = performance.now();
    const { path, requestId } = job.call;
    const times = {
      queueMs: Math.round(job.queueMs(nowMs)),
      runMs: Math.round(job.runMs),
      ms: Math.round(nowMs - job.acceptedAtMs),
    };
    // Who has left got no status.
    const outcome = error === null ? { status } : { status: HTTP_STATUS[error.code], code: error.code };
    this.#log.info({ ...traceOf(request), requestId, ...outcome, ...times }, `${request.method} ${path}`);
  }

  refused(request: IncomingMessage, requestId: string, { code }: ServeError): void {
    this.#log.info({ ...traceOf(request), requestId, code }, `${request.method} ${request.url} refused`);
  }
}

/** The caller's trace, to find a line of the log by it. */
function traceOf(request: IncomingMessage): { traceparent?: string } {
  const traceparent = validTraceparent(request.headers['traceparent']);
  return traceparent === null ? {} : { traceparent };
}
